#include "attend/kernels/attention.h"

#include "attend/autograd/ops.h"
#include "attend/autograd/traffic.h"
#include "attend/base/profile.h"
#include "attend/kernels/additive_attention.h"
#include "attend/kernels/rotary.h"

namespace attend {
namespace {

/// Queries, keys and values (or their gradients) as column slices of fused projections.
struct Slices {
  Tensor q, k, v;
};

Slices slice_self(const AttentionSettings& s, const Tensor& qkv) {
  const int64_t keys = s.heads * s.key_width, values = s.heads * s.value_width;
  return {qkv.slice_columns(0, keys), qkv.slice_columns(keys, 2 * keys),
          qkv.slice_columns(2 * keys, 2 * keys + values)};
}

Slices slice_cross(const AttentionSettings& s, const Tensor& q, const Tensor& kv) {
  const int64_t keys = s.heads * s.key_width, values = s.heads * s.value_width;
  return {q, kv.slice_columns(0, keys), kv.slice_columns(keys, keys + values)};
}

AttentionShape shape_of(const AttentionSettings& s, const Dropout& dropout) {
  return {.heads = s.heads,
          .key_width = s.key_width,
          .value_width = s.value_width,
          .query_offsets = *s.query_offsets,
          .key_offsets = *s.key_offsets,
          .causal = s.causal,
          .scale = s.scale,
          .dropout = dropout};
}

/// 2 · n_q · n_k · width for each of `products` products, counted without the masked half.
double flops_of(const AttentionSettings& s, int products) {
  double pairs = 0;
  for (std::size_t i = 0; i + 1 < s.query_offsets->size(); ++i) {
    const auto queries = static_cast<double>((*s.query_offsets)[i + 1] - (*s.query_offsets)[i]);
    const auto keys = static_cast<double>((*s.key_offsets)[i + 1] - (*s.key_offsets)[i]);
    pairs += s.causal ? queries * (queries + 1) / 2 : queries * keys;
  }
  return pairs * static_cast<double>(s.heads * (s.key_width + s.value_width) * products);
}

void forward(const AttentionSettings& s, const Dropout& dropout, const Slices& in,
             const Tensor& out) {
  const ProfileScope scope("attention forward", flops_of(s, 2));
  profile_traffic(in.q, in.k, in.v, out);
  const AttentionShape shape = shape_of(s, dropout);
  if (s.score_vector == nullptr) {
    attention_forward(shape, in.q, in.k, in.v, out);
  } else {
    additive_attention_forward(shape, in.q, in.k, in.v, s.score_vector->master, out);
  }
}

void backward(Tape& tape, const AttentionSettings& s, const Dropout& dropout, const Slices& in,
              const Tensor& d_out, const Slices& d) {
  const ProfileScope scope("attention backward", flops_of(s, 5));
  profile_traffic(in.q, in.k, in.v, d_out, d.q, d.k, d.v);
  const AttentionShape shape = shape_of(s, dropout);
  if (s.score_vector == nullptr) {
    attention_backward(shape, in.q, in.k, in.v, d_out, d.q, d.k, d.v);
    return;
  }
  const Tensor d_score = Tensor::zeros(s.score_vector->shape, DType::kFloat32);
  additive_attention_backward(shape, in.q, in.k, in.v, s.score_vector->master, d_out, d.q, d.k, d.v,
                              d_score);
  tape.add_gradient(*s.score_vector, [&] { convert(d_score, s.score_vector->gradient, true); });
}

}  // namespace

Variable self_attention(Context& context, const AttentionSettings& settings, const Variable& qkv) {
  const Dropout dropout = context.dropout(settings.dropout);
  const Tensor out =
      context.tensor({qkv.value().rows(), settings.heads * settings.value_width}, context.compute);
  forward(settings, dropout, slice_self(settings, qkv.value()), out);
  const Variable result(out, context.compute);
  Tape* tape = context.tape;
  if (tape == nullptr) return result;

  if (settings.score_vector != nullptr) tape->announce(*settings.score_vector);
  tape->record("attention backward", [=, memory = context.memory] {
    if (!result.gradient().defined()) return;
    const Tensor d_qkv = qkv.gradient_sink(*memory).tensor;  // qkv has this one reader
    backward(*tape, settings, dropout, slice_self(settings, qkv.value()), result.gradient(),
             slice_self(settings, d_qkv));
  });
  return result;
}

Variable cross_attention(Context& context, const AttentionSettings& settings, const Variable& q,
                         const Variable& kv) {
  const Dropout dropout = context.dropout(settings.dropout);
  const Tensor out =
      context.tensor({q.value().rows(), settings.heads * settings.value_width}, context.compute);
  forward(settings, dropout, slice_cross(settings, q.value(), kv.value()), out);
  const Variable result(out, context.compute);
  Tape* tape = context.tape;
  if (tape == nullptr) return result;

  if (settings.score_vector != nullptr) tape->announce(*settings.score_vector);
  tape->record("attention backward", [=, memory = context.memory] {
    if (!result.gradient().defined()) return;
    const Tensor dq = q.gradient_sink(*memory).tensor;  // q and kv have this one reader
    const Tensor d_kv = kv.gradient_sink(*memory).tensor;
    backward(*tape, settings, dropout, slice_cross(settings, q.value(), kv.value()),
             result.gradient(), slice_cross(settings, dq, d_kv));
  });
  return result;
}

Tensor cross_attention_weights(Context& context, const AttentionSettings& settings,
                               const Variable& q, const Variable& kv) {
  const ProfileScope scope("attention weights");
  const AttentionShape shape = shape_of(settings, {});
  const Slices in = slice_cross(settings, q.value(), kv.value());
  const Tensor weights = context.tensor({count_weights(shape)}, DType::kFloat32);
  if (settings.score_vector == nullptr) {
    attention_weights(shape, in.q, in.k, weights);
  } else {
    additive_attention_weights(shape, in.q, in.k, settings.score_vector->master, weights);
  }
  return weights;
}

void rotate(Context& context, const Variable& x,
            std::shared_ptr<const std::vector<int32_t>> positions, int64_t columns, int64_t heads) {
  const ProfileScope scope("rotary forward");
  const Tensor part = x.value().slice_columns(0, columns);
  rotary_forward(part, *positions, heads, part);
  profile_traffic(part, part);
  if (context.tape == nullptr) return;
  context.tape->record("rotary backward", [=] {
    if (!x.gradient().defined()) return;
    const Tensor gradient = x.gradient().slice_columns(0, columns);
    rotary_backward(gradient, *positions, heads, gradient);
    profile_traffic(gradient, gradient);
  });
}

}  // namespace attend
