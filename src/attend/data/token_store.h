#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace attend {

/// Pairs of token sequences in little memory: 16 bytes a pair, and a token in 2 bytes, or 4 where
/// an id needs them. Tokens lie in chunks that never move, so that growing copies nothing but the
/// 16 bytes.
class TokenStore {
 public:
  /// Ids are below `vocabulary_size`.
  explicit TokenStore(int64_t vocabulary_size = 0);

  void append(std::span<const int32_t> source, std::span<const int32_t> target);

  std::size_t size() const { return pairs_.size(); }
  int64_t source_length(int64_t pair) const { return pairs_[pair].source_length; }
  int64_t target_length(int64_t pair) const { return pairs_[pair].target_length; }
  void append_source(int64_t pair, std::vector<int32_t>& tokens) const;
  void append_target(int64_t pair, std::vector<int32_t>& tokens) const;

 private:
  struct Pair {
    uint32_t chunk;
    uint32_t offset;  ///< in bytes, in the chunk: the source, and the target behind it
    uint32_t source_length;
    uint32_t target_length;
  };
  struct Chunk {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t capacity;
    std::size_t used;
  };
  void write(std::byte* to, std::span<const int32_t> tokens) const;
  void read(const std::byte* from, int64_t count, std::vector<int32_t>& tokens) const;

  std::size_t token_bytes_;
  std::vector<Pair> pairs_;
  std::vector<Chunk> chunks_;
};

}  // namespace attend
