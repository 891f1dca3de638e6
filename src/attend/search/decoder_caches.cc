#include "attend/search/decoder_caches.h"

#include <algorithm>

#include "attend/base/profile.h"
#include "attend/kernels/activation.h"

namespace attend {
namespace {

constexpr int64_t kLeastSlots = 256;
constexpr int64_t kLeastRows = 64;

void copy_rows(const KeyValueCache& from, int64_t first, int64_t count, const KeyValueCache& to,
               int64_t to_first) {
  convert(from.keys.slice_rows(first, first + count),
          to.keys.slice_rows(to_first, to_first + count));
  convert(from.values.slice_rows(first, first + count),
          to.values.slice_rows(to_first, to_first + count));
}

/// Half as much again: room for a while, and not for long what nobody uses.
int64_t with_reserve(int64_t count) { return count + count / 2; }

}  // namespace

std::vector<PoolModel> make_pool_models(std::span<const Transformer* const> models,
                                        MemoryPool& memory) {
  std::vector<PoolModel> made;
  for (const Transformer* model : models) {
    made.push_back({.model = model,
                    .context = {.memory = &memory, .compute = model->compute()},
                    .caches = std::vector<LayerCache>(
                        static_cast<std::size_t>(model->config().decoder_layers))});
  }
  return made;
}

void DecoderCaches::reserve_slots(int64_t rows, const Holders& holders) {
  if (slots_.free() >= rows) return;
  const ProfileScope scope("cache slots");
  slots_.forget();
  holders(slots_);
  slots_.sweep();
  // A quarter of them free, or the next time comes soon.
  const int64_t held = slots_.count() - slots_.free();
  if (slots_.free() >= std::max(rows, slots_.count() / 4)) return;
  grow_slots(std::max(with_reserve(held + rows), kLeastSlots));
}

void DecoderCaches::grow_slots(int64_t count) {
  const int64_t before = slots_.count();
  slots_.grow(count);
  for (PoolModel& each : models_) {
    for (std::size_t layer = 0; layer < each.caches.size(); ++layer) {
      KeyValueCache& cache = each.caches[layer].self;
      const KeyValueCache larger = each.model->make_self_cache(each.context, layer, count);
      if (before > 0) copy_rows(cache, 0, before, larger, 0);
      cache = larger;
    }
    each.context.memory->release();  // the smaller ones are never wanted again
  }
}

MemoryRange DecoderCaches::take_range(int64_t count, std::span<MemoryRange* const> held) {
  if (const auto range = ranges_.take(count)) return *range;
  const ProfileScope scope("cache slots");
  rebuild_ranges(std::max({with_reserve(ranges_.in_use() + count), ranges_.count(), kLeastRows}),
                 held);
  return *ranges_.take(count);
}

/// All in a row, in new memory.
void DecoderCaches::rebuild_ranges(int64_t count, std::span<MemoryRange* const> held) {
  for (PoolModel& each : models_) {
    for (std::size_t layer = 0; layer < each.caches.size(); ++layer) {
      KeyValueCache& cache = each.caches[layer].memory;
      const KeyValueCache rebuilt = each.model->make_memory_cache(each.context, layer, count);
      int64_t to = 0;
      for (const MemoryRange* range : held) {
        copy_rows(cache, range->first, range->count, rebuilt, to);
        to += range->count;
      }
      cache = rebuilt;
    }
    each.context.memory->release();
  }
  int32_t to = 0;
  for (MemoryRange* range : held) {
    range->first = to;
    to += range->count;
  }
  ranges_.reset(count, to);
}

void DecoderCaches::reset() {
  slots_ = FreeSlots();
  ranges_ = FreeRanges();
  for (PoolModel& each : models_) each.caches.assign(each.caches.size(), {});
}

}  // namespace attend
