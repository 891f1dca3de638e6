#include "attend/data/byte_source.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <istream>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attend/base/error.h"

namespace attend {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;

class DescriptorBytes : public ByteSource {
 public:
  DescriptorBytes(int descriptor, bool owned, std::string name)
      : descriptor_(descriptor), owned_(owned), name_(std::move(name)) {}
  DescriptorBytes(const DescriptorBytes&) = delete;
  DescriptorBytes& operator=(const DescriptorBytes&) = delete;
  ~DescriptorBytes() override {
    if (owned_) ::close(descriptor_);
  }

  std::size_t read(std::span<char> into) override {
    for (;;) {
      const ssize_t got = ::read(descriptor_, into.data(), into.size());
      if (got >= 0) {
        position_ += got;
        return static_cast<std::size_t>(got);
      }
      if (errno != EINTR) fail("cannot read {}: {}", name_, std::strerror(errno));
    }
  }
  int64_t position() const override { return position_; }

 private:
  int descriptor_;
  bool owned_;
  std::string name_;
  int64_t position_ = 0;
};

class StreamBytes : public ByteSource {
 public:
  StreamBytes(std::istream& stream, std::string name) : stream_(stream), name_(std::move(name)) {}

  std::size_t read(std::span<char> into) override {
    // Wait for one byte, then take only what is buffered behind it.
    const int first = stream_.get();
    if (first == std::istream::traits_type::eof()) {
      if (stream_.bad()) fail("cannot read {}: its stream failed", name_);
      return 0;
    }
    into[0] = static_cast<char>(first);
    const auto room = static_cast<std::streamsize>(into.size() - 1);
    const std::size_t got = 1 + static_cast<std::size_t>(stream_.readsome(into.data() + 1, room));
    position_ += static_cast<int64_t>(got);
    return got;
  }
  int64_t position() const override { return position_; }

 private:
  std::istream& stream_;
  std::string name_;
  int64_t position_ = 0;
};

/// Passes plain bytes through and inflates gzip, which it knows by its first two bytes.
class DecompressedBytes : public ByteSource {
 public:
  DecompressedBytes(std::unique_ptr<ByteSource> inner, std::string name)
      : inner_(std::move(inner)), name_(std::move(name)), buffer_(kBufferBytes) {}
  DecompressedBytes(const DecompressedBytes&) = delete;
  DecompressedBytes& operator=(const DecompressedBytes&) = delete;
  ~DecompressedBytes() override {
    if (format_ == Format::kGzip) inflateEnd(&inflater_);
  }

  std::size_t read(std::span<char> into) override {
    if (format_ == Format::kUnknown) recognise();
    if (format_ == Format::kGzip) return read_gzip(into);
    if (used_ == filled_) return inner_->read(into);
    const std::size_t count = std::min(into.size(), filled_ - used_);
    std::copy_n(buffer_.begin() + static_cast<std::ptrdiff_t>(used_), count, into.begin());
    used_ += count;
    return count;
  }
  int64_t position() const override {
    return inner_->position() - static_cast<int64_t>(filled_ - used_);
  }

 private:
  enum class Format { kUnknown, kPlain, kGzip };

  void recognise() {
    fill();
    // A first read of one byte says nothing unless that byte already differs.
    while (filled_ == 1 && buffer_[0] == '\x1F') {
      const std::size_t got = inner_->read(std::span(buffer_).subspan(1));
      if (got == 0) break;
      filled_ += got;
    }
    const bool gzip = filled_ >= 2 && buffer_[0] == '\x1F' && buffer_[1] == '\x8B';
    if (gzip && inflateInit2(&inflater_, 16 + MAX_WBITS) != Z_OK) {
      fail("cannot decompress {}: zlib cannot start", name_);
    }
    format_ = gzip ? Format::kGzip : Format::kPlain;
  }

  bool fill() {
    used_ = 0;
    filled_ = inner_->read(buffer_);
    return filled_ > 0;
  }

  std::size_t read_gzip(std::span<char> into) {
    inflater_.next_out = reinterpret_cast<Bytef*>(into.data());
    inflater_.avail_out = static_cast<uInt>(into.size());
    while (inflater_.avail_out == into.size()) {
      if (used_ == filled_ && !fill()) {
        if (!between_members_) fail("{} is cut off: its gzip data has no end", name_);
        return 0;
      }
      if (between_members_ && !begin_member()) continue;
      inflate_some();
    }
    return into.size() - inflater_.avail_out;
  }

  /// Zeros after a member are padding (tar's blocks); anything else must be another member.
  bool begin_member() {
    while (used_ < filled_ && buffer_[used_] == '\0') ++used_;
    if (used_ == filled_) return false;
    if (buffer_[used_] != '\x1F') {
      fail("{} has something other than gzip data after the end of its gzip data", name_);
    }
    inflateReset(&inflater_);
    between_members_ = false;
    return true;
  }

  void inflate_some() {
    inflater_.next_in = reinterpret_cast<Bytef*>(buffer_.data() + used_);
    inflater_.avail_in = static_cast<uInt>(filled_ - used_);
    const int status = inflate(&inflater_, Z_NO_FLUSH);
    used_ = filled_ - inflater_.avail_in;
    if (status == Z_STREAM_END) {
      between_members_ = true;
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      fail("{} is damaged: {}", name_, inflater_.msg != nullptr ? inflater_.msg : "bad gzip data");
    }
  }

  std::unique_ptr<ByteSource> inner_;
  std::string name_;
  std::vector<char> buffer_;
  std::size_t used_ = 0;
  std::size_t filled_ = 0;
  Format format_ = Format::kUnknown;
  bool between_members_ = false;
  z_stream inflater_{};
};

}  // namespace

std::unique_ptr<ByteSource> open_bytes(const std::string& path) {
  if (path == "-") return std::make_unique<DescriptorBytes>(STDIN_FILENO, false, "standard input");
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail("cannot open {}: {}", path, std::strerror(errno));
  auto bytes = std::make_unique<DescriptorBytes>(descriptor, true, path);
  struct stat status {};
  if (::fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode)) {
    fail("{} is a directory; expected a text file, .gz or not", path);
  }
  return bytes;
}

std::unique_ptr<ByteSource> stream_bytes(std::istream& stream, std::string name) {
  return std::make_unique<StreamBytes>(stream, std::move(name));
}

std::unique_ptr<ByteSource> decompressed(std::unique_ptr<ByteSource> inner, std::string name) {
  return std::make_unique<DecompressedBytes>(std::move(inner), std::move(name));
}

}  // namespace attend
