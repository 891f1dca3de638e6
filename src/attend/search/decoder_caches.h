#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "attend/models/transformer.h"
#include "attend/search/cache_slots.h"

namespace attend {

/// A model of an ensemble, and what it needs to run.
struct PoolModel {
  const Transformer* model = nullptr;
  Context context;
  std::vector<LayerCache> caches;
};

std::vector<PoolModel> make_pool_models(std::span<const Transformer* const> models,
                                        MemoryPool& memory);

/// The decoders' keys and values of all that a pool searches. The models of an ensemble read the
/// same tokens, so that one book of slots and ranges serves them all.
class DecoderCaches {
 public:
  explicit DecoderCaches(std::span<PoolModel> models) : models_(models) {}

  /// Calls what it is given once with the slots of each hypothesis.
  using Holders = std::function<void(FreeSlots& slots)>;
  /// Room for `rows` more tokens of outputs. Where it is scarce, `holders` is asked to keep what is
  /// held; the rest is free again. The caches grow only where that makes too little room.
  void reserve_slots(int64_t rows, const Holders& holders);
  int32_t take_slot() { return slots_.take(); }

  /// Rows for a sentence of so many tokens. `held` are those of the others, which may move.
  MemoryRange take_range(int64_t count, std::span<MemoryRange* const> held);
  void give_back(MemoryRange range) { ranges_.give_back(range); }

  int64_t slots() const { return slots_.count(); }
  int64_t memory_rows() const { return ranges_.count(); }
  /// Gives up all memory; nothing may be held.
  void reset();

 private:
  void grow_slots(int64_t count);
  void rebuild_ranges(int64_t count, std::span<MemoryRange* const> held);

  std::span<PoolModel> models_;
  FreeSlots slots_;
  FreeRanges ranges_;
};

}  // namespace attend
