#include "attend/nn/attention.h"

#include <cmath>

#include "attend/base/profile.h"
#include "attend/kernels/activation.h"
#include "attend/kernels/cached_attention.h"
#include "attend/kernels/rotary.h"

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
             kind == Kind::kSelf ? 2 * keys() + values() : keys(), keys()),
      memory_input_(kind == Kind::kSelf
                        ? nullptr
                        : std::make_unique<Linear>(parameters, name + ".kv", config.d_model,
                                                   keys() + values(), keys())),
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
                                        const Variable& memory,
                                        const Offsets& memory_offsets) const {
  const Variable q = input_(context, x);
  const Variable kv = (*memory_input_)(context, memory);
  return output_(context, cross_attention(context, settings(offsets, memory_offsets), q, kv));
}

Variable MultiHeadAttention::attend_cached(Context& context, const Tensor& q,
                                           const KeyValueCache& cache,
                                           const CacheView& view) const {
  const CachedAttentionShape shape{.heads = heads_,
                                   .key_width = key_width_,
                                   .value_width = value_width_,
                                   .offsets = view.offsets,
                                   .slots = view.slots,
                                   .scale = scale_};
  const ProfileScope scope("cached attention");
  const Tensor out = context.tensor({q.rows(), values()}, context.compute);
  if (score_vector_ == nullptr) {
    cached_attention(shape, q, cache.keys, cache.values, out);
  } else {
    cached_additive_attention(shape, q, cache.keys, cache.values, score_vector_->master, out);
  }
  return output_(context, Variable(out, context.compute));
}

Variable MultiHeadAttention::step(Context& context, const Variable& x,
                                  const RowPositions& positions, KeyValueCache& cache,
                                  int64_t first_slot, const CacheView& view) const {
  const Variable qkv = input_(context, x);
  if (rotary_) rotate(context, qkv, positions, 2 * keys(), 2 * heads_);
  const Tensor& all = qkv.value();
  const int64_t last_slot = first_slot + all.rows();
  convert(all.slice_columns(keys(), 2 * keys()), cache.keys.slice_rows(first_slot, last_slot));
  convert(all.slice_columns(2 * keys(), 2 * keys() + values()),
          cache.values.slice_rows(first_slot, last_slot));
  return attend_cached(context, all.slice_columns(0, keys()), cache, view);
}

Variable MultiHeadAttention::step(Context& context, const Variable& x, const KeyValueCache& memory,
                                  const CacheView& view) const {
  return attend_cached(context, input_(context, x).value(), memory, view);
}

KeyValueCache MultiHeadAttention::project_memory(Context& context, const Variable& memory) const {
  const Tensor kv = (*memory_input_)(context, memory).value();
  return {kv.slice_columns(0, keys()), kv.slice_columns(keys(), keys() + values())};
}

KeyValueCache MultiHeadAttention::make_cache(const Context& context, int64_t slots) const {
  return {context.tensor({slots, keys()}, context.compute),
          context.tensor({slots, values()}, context.compute)};
}

}  // namespace attend
