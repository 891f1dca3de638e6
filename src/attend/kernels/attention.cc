#include "attend/kernels/attention.h"

// The order matters.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/attention.cc"
#include "attend/kernels/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include "attend/kernels/attention_heads-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {
namespace {

/// scale * q . k; the scale is taken into q beforehand.
struct DotScore {
  int64_t width;
  float scale;

  float query_scale() const { return scale; }
  float gradient_scale() const { return scale; }

  void Scores(int64_t, const QueryBlock& block, const HeadScratch& scratch) const {
    MultiplyKeys(block, scratch.keys, scratch.key_stride, scratch.queries, width, scratch.scores);
  }
  void Gradients(int64_t, const QueryBlock& block, const HeadScratch& scratch) const {
    WeighRows(block, scratch.d_scores, scratch.keys, width, scratch.key_stride, scratch.out);
    AddWeighedRows(block, scratch.d_scores, scratch.query_rows, width, scratch.key_stride,
                   scratch.d_keys);
  }
};

void Forward(const AttentionShape& shape, const Tensor& q, const Tensor& k, const Tensor& v,
             const Tensor& out) {
  const DotScore score{shape.key_width, shape.scale};
  if (q.dtype() == DType::kFloat32) {
    ForwardHeads<float>(shape, q, k, v, score, out);
  } else {
    ForwardHeads<BFloat16>(shape, q, k, v, score, out);
  }
}

void Backward(const AttentionShape& shape, const Tensor& q, const Tensor& k, const Tensor& v,
              const Tensor& d_out, const Tensor& d_q, const Tensor& d_k, const Tensor& d_v) {
  const DotScore score{shape.key_width, shape.scale};
  if (q.dtype() == DType::kFloat32) {
    BackwardHeads<float>(shape, q, k, v, score, d_out, d_q, d_k, d_v);
  } else {
    BackwardHeads<BFloat16>(shape, q, k, v, score, d_out, d_q, d_k, d_v);
  }
}

void Weights(const AttentionShape& shape, const Tensor& q, const Tensor& k, float* out) {
  const DotScore score{shape.key_width, shape.scale};
  if (q.dtype() == DType::kFloat32) {
    WeighHeads<float>(shape, q, k, score, out);
  } else {
    WeighHeads<BFloat16>(shape, q, k, score, out);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend {
namespace {

HWY_EXPORT(Forward);
HWY_EXPORT(Backward);
HWY_EXPORT(Weights);

}  // namespace

void attention_forward(const AttentionShape& shape, const Tensor& q, const Tensor& k,
                       const Tensor& v, const Tensor& out) {
  constexpr const char* kWhat = "attention_forward";
  check_attention(kWhat, shape, q, k, v);
  check_matrix(kWhat, "out", out, q.rows(), shape.heads * shape.value_width, q.dtype());
  HWY_DYNAMIC_DISPATCH(Forward)(shape, q, k, v, out);
}

void attention_backward(const AttentionShape& shape, const Tensor& q, const Tensor& k,
                        const Tensor& v, const Tensor& d_out, const Tensor& d_q, const Tensor& d_k,
                        const Tensor& d_v) {
  constexpr const char* kWhat = "attention_backward";
  check_attention(kWhat, shape, q, k, v);
  check_gradients(kWhat, shape, q, k, v, d_out, d_q, d_k, d_v);
  HWY_DYNAMIC_DISPATCH(Backward)(shape, q, k, v, d_out, d_q, d_k, d_v);
}

void attention_weights(const AttentionShape& shape, const Tensor& q, const Tensor& k,
                       const Tensor& weights) {
  constexpr const char* kWhat = "attention_weights";
  check_weights(kWhat, shape, q, k, weights);
  HWY_DYNAMIC_DISPATCH(Weights)(shape, q, k, weights.data<float>());
}

}  // namespace attend
#endif  // HWY_ONCE
