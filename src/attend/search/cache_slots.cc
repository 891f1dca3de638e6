#include "attend/search/cache_slots.h"

#include <algorithm>
#include <limits>

#include "attend/base/error.h"

namespace attend {
namespace {

void check_count(int64_t count) {
  if (count > std::numeric_limits<int32_t>::max()) {
    fail("a search needs more than 2^31 tokens at once; use a smaller beam_size or batch_tokens");
  }
}

}  // namespace

int32_t FreeSlots::take() {
  const int32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void FreeSlots::forget() { std::fill(held_.begin(), held_.end(), uint8_t{0}); }

void FreeSlots::keep(std::span<const int32_t> slots) {
  for (const int32_t slot : slots) held_[static_cast<std::size_t>(slot)] = 1;
}

void FreeSlots::sweep() {
  free_.clear();
  for (auto slot = static_cast<int32_t>(held_.size()) - 1; slot >= 0; --slot) {
    if (held_[static_cast<std::size_t>(slot)] == 0) free_.push_back(slot);
  }
}

void FreeSlots::grow(int64_t count) {
  check_count(count);
  const auto before = static_cast<int32_t>(held_.size());
  held_.resize(static_cast<std::size_t>(count), 0);
  std::vector<int32_t> free;
  free.reserve(static_cast<std::size_t>(count));
  for (auto slot = static_cast<int32_t>(count) - 1; slot >= before; --slot) free.push_back(slot);
  free.insert(free.end(), free_.begin(), free_.end());
  free_ = std::move(free);
}

std::optional<MemoryRange> FreeRanges::take(int64_t count) {
  const auto place = std::find_if(free_.begin(), free_.end(),
                                  [&](const MemoryRange& range) { return range.count >= count; });
  if (place == free_.end()) return std::nullopt;
  const MemoryRange taken{place->first, static_cast<int32_t>(count)};
  place->first += taken.count;
  place->count -= taken.count;
  if (place->count == 0) free_.erase(place);
  in_use_ += count;
  return taken;
}

void FreeRanges::give_back(MemoryRange range) {
  in_use_ -= range.count;
  auto after = std::find_if(free_.begin(), free_.end(),
                            [&](const MemoryRange& other) { return other.first > range.first; });
  if (after != free_.end() && range.first + range.count == after->first) {
    range.count += after->count;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    MemoryRange& before = *std::prev(after);
    if (before.first + before.count == range.first) {
      before.count += range.count;
      return;
    }
  }
  free_.insert(after, range);
}

void FreeRanges::reset(int64_t count, int64_t in_use) {
  check_count(count);
  count_ = count;
  in_use_ = in_use;
  free_.clear();
  if (in_use < count) {
    free_.push_back({static_cast<int32_t>(in_use), static_cast<int32_t>(count - in_use)});
  }
}

}  // namespace attend
