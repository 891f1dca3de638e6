#include "attend/data/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <istream>
#include <span>
#include <utility>

#include "attend/base/error.h"
#include "attend/data/byte_source.h"

namespace attend {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

struct Signature {
  std::string_view start;
  std::string_view what;
};
constexpr std::array kSignatures = {
    Signature{"\xFF\xFE", "UTF-16 text; convert it with `iconv -f UTF-16 -t UTF-8`"},
    Signature{"\xFE\xFF", "UTF-16 text; convert it with `iconv -f UTF-16 -t UTF-8`"},
    Signature{"\xFD"
              "7zXZ",
              "an xz archive; unpack it with `xz -d`"},
    Signature{"\x28\xB5\x2F\xFD", "a zstd archive; unpack it with `zstd -d`"},
    Signature{"BZh", "a bzip2 archive; unpack it with `bzip2 -d`"},
    Signature{"PK\x03\x04", "a zip archive; unpack it with `unzip`"},
};

}  // namespace

LineReader::LineReader(const std::string& path, ReadOptions options)
    : name_(path == "-" ? "standard input" : path),
      options_(options),
      source_(decompressed(open_bytes(path), name_)) {}

LineReader::LineReader(std::istream& stream, std::string name, ReadOptions options)
    : name_(std::move(name)),
      options_(options),
      source_(decompressed(stream_bytes(stream, name_), name_)) {}

LineReader::LineReader(LineReader&&) noexcept = default;
LineReader& LineReader::operator=(LineReader&&) noexcept = default;
LineReader::~LineReader() = default;

bool LineReader::next(std::string& line) {
  line.clear();
  while (!take_line(line)) {
    if (static_cast<int64_t>(line.size()) > options_.max_line_bytes) {
      fail("{}, line {}: more than {} bytes without a line end; is it a text file?", name_,
           line_number_ + 1, options_.max_line_bytes);
    }
    buffer_.resize(kBufferBytes);
    used_ = 0;
    buffer_.resize(source_->read(std::span(buffer_)));
    bytes_filled_ += static_cast<int64_t>(buffer_.size());
    if (!buffer_.empty()) continue;
    const bool only_mark = line_number_ == 0 && line == kByteOrderMark;
    if (line.empty() || only_mark) {
      line.clear();
      return false;
    }
    finish_line(line, false);
    return true;
  }
  finish_line(line, true);
  return true;
}

int64_t LineReader::bytes_read() const {
  if (bytes_filled_ == 0) return 0;
  const auto filled = static_cast<double>(bytes_filled_);
  const double given = filled - static_cast<double>(buffer_.size() - used_);
  return std::llround(static_cast<double>(source_->position()) * given / filled);
}

bool LineReader::take_line(std::string& line) {
  const std::size_t end = buffer_.find('\n', used_);
  const std::size_t stop = end == std::string::npos ? buffer_.size() : end;
  line.append(buffer_, used_, stop - used_);
  used_ = end == std::string::npos ? stop : end + 1;
  return end != std::string::npos;
}

void LineReader::finish_line(std::string& line, bool ended) {
  ++line_number_;
  if (ended && line.ends_with('\r')) line.pop_back();
  if (line_number_ == 1) {
    if (options_.refuse_binary) refuse_binary_start(line);
    if (line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
  }
  if (options_.refuse_binary) refuse_nul(line);
}

void LineReader::refuse_binary_start(std::string_view start) const {
  for (const Signature& signature : kSignatures) {
    if (!start.starts_with(signature.start) || valid_utf8(start)) continue;
    fail("{} is not UTF-8 text: it starts like {}", name_, signature.what);
  }
}

void LineReader::refuse_nul(std::string_view line) const {
  if (line.find('\0') == std::string_view::npos) return;
  fail("{}, line {}: there is a NUL byte in it, so it is no text file; expected UTF-8 text", name_,
       line_number_);
}

std::vector<std::string> read_lines(const std::string& path, ReadOptions options) {
  LineReader reader(path, options);
  std::vector<std::string> lines;
  for (std::string line; reader.next(line);) lines.push_back(line);
  return lines;
}

}  // namespace attend
