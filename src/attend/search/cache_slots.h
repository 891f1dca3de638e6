#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace attend {

/// Which slots of the self-attention caches are free. A token's keys and values are written once
/// and never move; hypotheses share their ancestors' slots, and nobody counts who holds one. When
/// the free ones run out, the holders name theirs, and the others become free.
class FreeSlots {
 public:
  int64_t count() const { return static_cast<int64_t>(held_.size()); }
  int64_t free() const { return static_cast<int64_t>(free_.size()); }
  /// A free slot, the lowest of the last sweep; there must be one.
  int32_t take();

  /// A sweep: forget who holds what; keep() all that is held; sweep().
  void forget();
  void keep(std::span<const int32_t> slots);
  void sweep();
  /// More of them, the new ones free.
  void grow(int64_t count);

 private:
  std::vector<uint8_t> held_;
  std::vector<int32_t> free_;  ///< highest first
};

/// A contiguous piece of the encoder–decoder caches: a row for each source token.
struct MemoryRange {
  int32_t first = 0;
  int32_t count = 0;
};

/// Which rows of the encoder–decoder caches are free.
class FreeRanges {
 public:
  int64_t count() const { return count_; }
  int64_t in_use() const { return in_use_; }
  /// The first place where `count` rows are free; nothing where there is none.
  std::optional<MemoryRange> take(int64_t count);
  void give_back(MemoryRange range);
  /// So many rows, the first `in_use` of them taken.
  void reset(int64_t count, int64_t in_use);

 private:
  int64_t count_ = 0;
  int64_t in_use_ = 0;
  std::vector<MemoryRange> free_;  ///< in order, none empty, none next to another
};

}  // namespace attend
