#include "attend/nn/attention.h"

#include <cmath>

#include "attend/base/profile.h"
#include "attend/kernels/activation.h"
#include "attend/kernels/cached_attention.h"
#include "attend/kernels/rotary.h"
#include "attend/kernels/rows.h"

namespace attend {

MultiHeadAttention::MultiHeadAttention(ParameterSet& parameters, const std::string& name,
                                       const TransformerConfig& config, Kind kind, bool causal)
    : heads_(config.heads),
      key_width_(config.key_width()),
      value_width_(config.value_width()),
      scale_(config.attention_score == AttentionScore::kAdditive
                 ? 1.0F
                 : 1.0F / std::sqrt(static_cast<float>(config.key_width()))),
      dropout_(config.attention_dropout),
      causal_(causal),
      rotary_(config.positions == Positions::kRotary && kind == Kind::kSelf),
      input_(parameters, name + (kind == Kind::kSelf ? ".qkv" : ".q"), config.d_model,
             kind == Kind::kSelf ? projected() : keys(), projected()),
      memory_input_(kind == Kind::kSelf
                        ? nullptr
                        : std::make_unique<Linear>(parameters, name + ".kv", config.d_model,
                                                   keys() + values(), projected())),
      output_(parameters, name + ".output", values(), config.d_model) {
  if (config.attention_score == AttentionScore::kAdditive) {
    score_vector_ = &parameters.add(name + ".score_vector", {heads_, key_width_},
                                    xavier_uniform(key_width_, 1));
  }
}

AttentionSettings MultiHeadAttention::settings(const Offsets& queries, const Offsets& keys) const {
  return {.heads = heads_,
          .key_width = key_width_,
          .value_width = value_width_,
          .causal = causal_,
          .scale = scale_,
          .dropout = dropout_,
          .query_offsets = queries,
          .key_offsets = keys,
          .score_vector = score_vector_};
}

Variable MultiHeadAttention::operator()(Context& context, const Variable& x, const Offsets& offsets,
                                        const RowPositions& positions) const {
  const Variable qkv = input_(context, x);
  if (rotary_) rotate(context, qkv, positions, 2 * keys(), 2 * heads_);
  return output_(context, self_attention(context, settings(offsets, offsets), qkv));
}

Variable MultiHeadAttention::operator()(Context& context, const Variable& x, const Offsets& offsets,
                                        const Variable& memory, const Offsets& memory_offsets,
                                        Tensor* weights) const {
  const Variable q = input_(context, x);
  const Variable kv = (*memory_input_)(context, memory);
  const AttentionSettings how = settings(offsets, memory_offsets);
  if (weights != nullptr) *weights = cross_attention_weights(context, how, q, kv);
  return output_(context, cross_attention(context, how, q, kv));
}

Variable MultiHeadAttention::step(Context& context, const Variable& x,
                                  const RowPositions& positions, const KeyValueCache& cache,
                                  std::span<const int32_t> slots, const CacheView& view) const {
  const Variable qkv = input_(context, x);
  if (rotary_) rotate(context, qkv, positions, 2 * keys(), 2 * heads_);
  const Tensor& all = qkv.value();
  {
    const ProfileScope scope("write caches");
    scatter_rows(all.slice_columns(keys(), 2 * keys()), slots, cache.keys);
    scatter_rows(all.slice_columns(2 * keys(), 2 * keys() + values()), slots, cache.values);
  }
  const Tensor q = all.slice_columns(0, keys()),
               out = context.tensor({q.rows(), values()}, context.compute);
  const CachedAttentionShape shape{.heads = heads_,
                                   .key_width = key_width_,
                                   .value_width = value_width_,
                                   .offsets = view.offsets,
                                   .slots = view.slots,
                                   .scale = scale_};
  {
    const ProfileScope scope("cached attention");
    if (score_vector_ == nullptr) {
      cached_attention(shape, q, cache.keys, cache.values, out);
    } else {
      cached_additive_attention(shape, q, cache.keys, cache.values, score_vector_->master, out);
    }
  }
  return output_(context, Variable(out, context.compute));
}

Variable MultiHeadAttention::step(Context& context, const Variable& x, const KeyValueCache& memory,
                                  const MemoryView& view, std::span<float> weights) const {
  const Tensor q = input_(context, x).value(),
               out = context.tensor({q.rows(), values()}, context.compute);
  const MemoryAttentionShape shape{.heads = heads_,
                                   .key_width = key_width_,
                                   .value_width = value_width_,
                                   .first = view.first,
                                   .count = view.count,
                                   .scale = scale_};
  {
    const ProfileScope scope("memory attention");
    if (score_vector_ == nullptr) {
      memory_attention(shape, q, memory.keys, memory.values, out, weights);
    } else {
      memory_additive_attention(shape, q, memory.keys, memory.values, score_vector_->master, out,
                                weights);
    }
  }
  return output_(context, Variable(out, context.compute));
}

void MultiHeadAttention::write_memory(Context& context, const Variable& memory,
                                      const Offsets& offsets, std::span<const int32_t> first,
                                      const KeyValueCache& cache) const {
  const Tensor kv = (*memory_input_)(context, memory).value();
  const ProfileScope scope("write caches");
  for (std::size_t i = 0; i < first.size(); ++i) {
    const Tensor rows = kv.slice_rows((*offsets)[i], (*offsets)[i + 1]);
    const int64_t to = first[i], end = to + rows.rows();
    convert(rows.slice_columns(0, keys()), cache.keys.slice_rows(to, end));
    convert(rows.slice_columns(keys(), keys() + values()), cache.values.slice_rows(to, end));
  }
}

KeyValueCache MultiHeadAttention::make_cache(const Context& context, DType dtype,
                                             int64_t slots) const {
  return {context.tensor({slots, keys()}, dtype), context.tensor({slots, values()}, dtype)};
}

}  // namespace attend
