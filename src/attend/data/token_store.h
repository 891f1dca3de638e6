#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "attend/base/files.h"

namespace attend {

/// Where a pair's tokens lie in a TokenStore.
struct StoredPair {
  int64_t pair = 0;
  int64_t offset = 0;  ///< tokens that lie before its own
  int32_t source_length = 0;
  int32_t target_length = 0;
};

/// How many tokens each side's tokenizer has.
struct Vocabularies {
  int64_t source = 0;
  int64_t target = 0;
};

/// Pairs end to end, as they go into a TokenStore: what the threads that tokenize make.
class TokenChunk {
 public:
  /// Throws Error for a sequence that is too long to be kept.
  void add(std::span<const int32_t> source, std::span<const int32_t> target,
           const Vocabularies& vocabularies);

 private:
  friend class TokenStore;
  std::vector<StoredPair> pairs_;  ///< with offsets from the chunk's begin
  std::string tokens_;
  int64_t count_ = 0;
};

/// Pairs of token sequences on the disk: an index of 16 bytes a pair, and a token in 2 bytes, or 4
/// where an id needs them. Nothing of it is in memory.
///
/// The files are read with pread and not mapped: mapped pages count as the process's memory, and
/// a file that fails or is cut off would be a SIGBUS instead of an Error that says so. What is read
/// is checked: a damaged file is an Error and never a token id that the model does not have.
///
/// A const store may be read by many threads at once.
class TokenStore {
 public:
  struct Size {
    int64_t pairs = 0;
    int64_t tokens = 0;
    bool operator==(const Size&) const = default;
  };
  enum class Mode { kRead, kWrite };

  /// An empty one in files without names.
  explicit TokenStore(const Vocabularies& vocabularies);
  /// The files `index` and `tokens` in `folder`, which hold so much. kWrite: they may hold more,
  /// which is cut off, or be missing where the size is 0. Throws Error where they hold less, or for
  /// kRead anything else.
  TokenStore(Path folder, const Vocabularies& vocabularies, Size size, Mode mode);

  const Size& size() const { return size_; }
  void append(const TokenChunk& chunk);
  /// Returns when all that was appended is on the disk.
  void flush() const;

  /// Pairs [begin, end).
  std::vector<StoredPair> pairs(int64_t begin, int64_t end) const;
  StoredPair pair(int64_t pair) const;
  /// Appends a pair's tokens.
  void read(const StoredPair& pair, std::vector<int32_t>& source,
            std::vector<int32_t>& target) const;
  /// Hints that pair() or read() will soon be called, so that a disk can work ahead.
  void expect(int64_t pair) const;
  void expect(const StoredPair& pair) const;

  /// Bytes that so much takes on the disk.
  static int64_t bytes(Size size, const Vocabularies& vocabularies);
  /// The files' names in a folder.
  static constexpr const char* kIndexFile = "index";
  static constexpr const char* kTokensFile = "tokens";

 private:
  struct Record;
  StoredPair checked(int64_t pair, const Record& record) const;
  [[noreturn]] void fail_damaged(const Path& file, int64_t pair) const;

  Path folder_;  ///< empty: without names
  Path index_path_, tokens_path_;
  FileDescriptor index_, tokens_;
  Vocabularies vocabularies_;
  int64_t token_bytes_;
  Size size_;
};

}  // namespace attend
