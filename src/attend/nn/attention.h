#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "attend/nn/layers.h"

namespace attend {

/// Where rotary positions come from: the position of every row.
using RowPositions = std::shared_ptr<const std::vector<int32_t>>;

/// Keys and values of earlier tokens, a row (slot) each, while decoding.
struct KeyValueCache {
  Tensor keys;    ///< [slots, heads · d_k]
  Tensor values;  ///< [slots, heads · d_v], the same dtype
};

/// Which slots each row of a decoding step sees: row r, slots[offsets[r] … offsets[r + 1]).
struct CacheView {
  std::vector<int64_t> offsets{0};
  std::vector<int32_t> slots;
};

/// Which source tokens each row sees: row r, [first[r], first[r] + count[r]) of the memory's cache.
struct MemoryView {
  std::vector<int64_t> first;
  std::vector<int64_t> count;
};

/// MultiHead(Q, K, V) = Concat(head_1, …, head_h) W^O (Vaswani et al. 2017, §3.2.2), with the
/// scaled dot product or Bahdanau's additive score.
class MultiHeadAttention {
 public:
  enum class Kind { kSelf, kCross };
  MultiHeadAttention(ParameterSet& parameters, const std::string& name,
                     const TransformerConfig& config, Kind kind, bool causal);

  /// Self-attention over sequences laid end to end. x [tokens, d_model].
  Variable operator()(Context& context, const Variable& x, const Offsets& offsets,
                      const RowPositions& positions) const;
  /// Encoder–decoder attention: x asks, memory answers (§3.2.3). Where `weights` is given it
  /// becomes what cross_attention_weights says.
  Variable operator()(Context& context, const Variable& x, const Offsets& offsets,
                      const Variable& memory, const Offsets& memory_offsets,
                      Tensor* weights = nullptr) const;

  /// Decoding, self-attention: writes the keys and values of row r of x into slot `slots[r]` of the
  /// cache, then attends to the slots that `view` names. x [rows, d_model].
  Variable step(Context& context, const Variable& x, const RowPositions& positions,
                const KeyValueCache& cache, std::span<const int32_t> slots,
                const CacheView& view) const;
  /// Decoding, encoder–decoder attention, over what `write_memory` wrote. `weights`, where not
  /// empty, becomes the mean over the heads of each row's attention to its source, row after row.
  Variable step(Context& context, const Variable& x, const KeyValueCache& memory,
                const MemoryView& view, std::span<float> weights) const;
  /// The memory's keys and values, sequence i's from row `first[i]` of the cache on.
  void write_memory(Context& context, const Variable& memory, const Offsets& offsets,
                    std::span<const int32_t> first, const KeyValueCache& cache) const;
  /// An empty cache with room for `slots` rows.
  KeyValueCache make_cache(const Context& context, DType dtype, int64_t slots) const;

 private:
  AttentionSettings settings(const Offsets& queries, const Offsets& keys) const;
  int64_t keys() const { return heads_ * key_width_; }
  int64_t values() const { return heads_ * value_width_; }
  /// Queries, keys and values are drawn as one matrix of this width, as fairseq does: with Glorot's
  /// bound for each on its own (√2 wider where all are d_model) training starts slower.
  int64_t projected() const { return 2 * keys() + values(); }

  int64_t heads_, key_width_, value_width_;
  float scale_, dropout_;
  bool causal_, rotary_;
  Linear input_;                          ///< q, k and v side by side; in cross-attention q
  std::unique_ptr<Linear> memory_input_;  ///< cross-attention: k and v side by side
  Linear output_;
  Parameter* score_vector_ = nullptr;
};

}  // namespace attend
