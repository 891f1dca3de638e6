#include "attend/data/token_store.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attend/base/error.h"

namespace attend {
namespace {

constexpr int64_t kLongestSequence = int64_t{1} << 30;

/// The narrow type is used for ids up to 65 535.
int64_t token_bytes_of(const Vocabularies& vocabularies) {
  const int64_t larger = std::max(vocabularies.source, vocabularies.target);
  return larger <= std::numeric_limits<uint16_t>::max() + 1 ? sizeof(uint16_t) : sizeof(uint32_t);
}

template <typename Stored>
void append_as(std::span<const int32_t> tokens, std::string& to) {
  const std::size_t before = to.size();
  to.resize(before + tokens.size() * sizeof(Stored));
  auto* stored = reinterpret_cast<Stored*>(to.data() + before);
  for (const int32_t token : tokens) *stored++ = static_cast<Stored>(token);
}

/// Appends `count` tokens; false where one is not below `vocabulary`.
template <typename Stored>
bool read_as(const char* from, int64_t count, int64_t vocabulary, std::vector<int32_t>& to) {
  const auto* stored = reinterpret_cast<const Stored*>(from);
  bool good = true;
  const std::size_t before = to.size();
  to.resize(before + count);
  for (int64_t i = 0; i < count; ++i) {
    good = good && static_cast<int64_t>(stored[i]) < vocabulary;
    to[before + i] = static_cast<int32_t>(stored[i]);
  }
  return good;
}

FileDescriptor open_for(const Path& path, TokenStore::Mode mode) {
  if (mode == TokenStore::Mode::kRead) return open_file(path);
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (file.get() < 0) fail_on_file("write", path, errno);
  return file;
}

void check_size(const FileDescriptor& file, const Path& path, int64_t expected,
                TokenStore::Mode mode) {
  const int64_t found = size_of_file(file, path);
  const bool write = mode == TokenStore::Mode::kWrite;
  if (found < expected || (found > expected && !write)) {
    fail("{} has {} bytes, where {} were expected", path.string(), found, expected);
  }
  if (found > expected && ::ftruncate(file.get(), expected) != 0) {
    fail_on_file("write", path, errno);
  }
}

/// For errors.
Path temporary_name() {
  std::error_code error;
  return std::filesystem::temp_directory_path(error) / "(a temporary file)";
}

/// Otherwise the system reads whole neighbourhoods of what is read in random order.
void announce_random(const FileDescriptor& file) {
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_RANDOM);
}

}  // namespace

/// A pair in the index.
struct TokenStore::Record {
  uint64_t offset;
  uint32_t source_length;
  uint32_t target_length;
};

void TokenChunk::add(std::span<const int32_t> source, std::span<const int32_t> target,
                     const Vocabularies& vocabularies) {
  const int64_t longer = std::max(std::ssize(source), std::ssize(target));
  if (longer > kLongestSequence) {
    fail("a sentence has {} tokens; at most {} can be kept", longer, kLongestSequence);
  }
  pairs_.push_back({std::ssize(pairs_), count_, static_cast<int32_t>(source.size()),
                    static_cast<int32_t>(target.size())});
  count_ += std::ssize(source) + std::ssize(target);
  for (const auto& side : {source, target}) {
    if (token_bytes_of(vocabularies) == sizeof(uint16_t)) {
      append_as<uint16_t>(side, tokens_);
    } else {
      append_as<uint32_t>(side, tokens_);
    }
  }
}

TokenStore::TokenStore(const Vocabularies& vocabularies)
    : index_path_(temporary_name()),
      tokens_path_(index_path_),
      index_(temporary_file()),
      tokens_(temporary_file()),
      vocabularies_(vocabularies),
      token_bytes_(token_bytes_of(vocabularies)) {
  announce_random(index_);
  announce_random(tokens_);
}

TokenStore::TokenStore(Path folder, const Vocabularies& vocabularies, Size size, Mode mode)
    : folder_(std::move(folder)),
      index_path_(folder_ / kIndexFile),
      tokens_path_(folder_ / kTokensFile),
      index_(open_for(index_path_, mode)),
      tokens_(open_for(tokens_path_, mode)),
      vocabularies_(vocabularies),
      token_bytes_(token_bytes_of(vocabularies)),
      size_(size) {
  constexpr int64_t kMost = int64_t{1} << 58;
  if (size.pairs < 0 || size.tokens < 0 || size.pairs > kMost || size.tokens > kMost) {
    fail("{} cannot hold {} pairs of {} tokens", folder_.string(), size.pairs, size.tokens);
  }
  check_size(index_, index_path_, size.pairs * static_cast<int64_t>(sizeof(Record)), mode);
  check_size(tokens_, tokens_path_, size.tokens * token_bytes_, mode);
  announce_random(index_);
  announce_random(tokens_);
}

int64_t TokenStore::bytes(Size size, const Vocabularies& vocabularies) {
  return size.pairs * static_cast<int64_t>(sizeof(Record)) +
         size.tokens * token_bytes_of(vocabularies);
}

void TokenStore::append(const TokenChunk& chunk) {
  std::vector<Record> records;
  records.reserve(chunk.pairs_.size());
  for (const StoredPair& pair : chunk.pairs_) {
    records.push_back({static_cast<uint64_t>(size_.tokens + pair.offset),
                       static_cast<uint32_t>(pair.source_length),
                       static_cast<uint32_t>(pair.target_length)});
  }
  write_at(tokens_, tokens_path_, size_.tokens * token_bytes_, chunk.tokens_);
  write_at(index_, index_path_, size_.pairs * static_cast<int64_t>(sizeof(Record)),
           {reinterpret_cast<const char*>(records.data()), records.size() * sizeof(Record)});
  size_.pairs += std::ssize(records);
  size_.tokens += chunk.count_;
}

void TokenStore::flush() const {
  if (::fdatasync(tokens_.get()) != 0) fail_on_file("write", tokens_path_, errno);
  if (::fdatasync(index_.get()) != 0) fail_on_file("write", index_path_, errno);
}

std::vector<StoredPair> TokenStore::pairs(int64_t begin, int64_t end) const {
  std::vector<Record> records(end - begin);
  constexpr auto kBytes = static_cast<int64_t>(sizeof(Record));
  read_at(index_, index_path_, begin * kBytes, records.data(), (end - begin) * kBytes);
  std::vector<StoredPair> found;
  found.reserve(records.size());
  for (const Record& record : records) {
    found.push_back(checked(begin + std::ssize(found), record));
  }
  return found;
}

StoredPair TokenStore::pair(int64_t pair) const {
  Record record{};
  read_at(index_, index_path_, pair * static_cast<int64_t>(sizeof(Record)), &record,
          sizeof(Record));
  return checked(pair, record);
}

StoredPair TokenStore::checked(int64_t pair, const Record& record) const {
  const auto tokens = static_cast<uint64_t>(size_.tokens);
  const auto longest = static_cast<uint32_t>(kLongestSequence);
  const bool good = record.source_length <= longest && record.target_length <= longest &&
                    record.offset <= tokens &&
                    uint64_t{record.source_length} + record.target_length <= tokens - record.offset;
  if (!good) fail_damaged(index_path_, pair);
  return {pair, static_cast<int64_t>(record.offset), static_cast<int32_t>(record.source_length),
          static_cast<int32_t>(record.target_length)};
}

void TokenStore::read(const StoredPair& pair, std::vector<int32_t>& source,
                      std::vector<int32_t>& target) const {
  const int64_t source_bytes = pair.source_length * token_bytes_;
  const int64_t bytes = source_bytes + pair.target_length * token_bytes_;
  thread_local std::vector<char> buffer;
  buffer.resize(bytes);
  read_at(tokens_, tokens_path_, pair.offset * token_bytes_, buffer.data(), bytes);
  const char* const second = buffer.data() + source_bytes;
  const bool good =
      token_bytes_ == sizeof(uint16_t)
          ? read_as<uint16_t>(buffer.data(), pair.source_length, vocabularies_.source, source) &&
                read_as<uint16_t>(second, pair.target_length, vocabularies_.target, target)
          : read_as<uint32_t>(buffer.data(), pair.source_length, vocabularies_.source, source) &&
                read_as<uint32_t>(second, pair.target_length, vocabularies_.target, target);
  if (!good) fail_damaged(tokens_path_, pair.pair);
}

void TokenStore::expect(int64_t pair) const {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(Record));
  ::posix_fadvise(index_.get(), pair * kBytes, kBytes, POSIX_FADV_WILLNEED);
}

void TokenStore::expect(const StoredPair& pair) const {
  ::posix_fadvise(tokens_.get(), pair.offset * token_bytes_,
                  (int64_t{pair.source_length} + pair.target_length) * token_bytes_,
                  POSIX_FADV_WILLNEED);
}

void TokenStore::fail_damaged(const Path& file, int64_t pair) const {
  fail("{} is damaged: what it says of pair {} cannot be{}", file.string(), pair,
       folder_.empty() ? ""
                       : fmt::format("; remove the folder {}, and the next start writes it again",
                                     folder_.string()));
}

}  // namespace attend
