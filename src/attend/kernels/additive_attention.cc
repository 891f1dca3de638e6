#include "attend/kernels/additive_attention.h"

// The order matters.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/additive_attention.cc"
#include "attend/kernels/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include "attend/kernels/attention_heads-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {
namespace {

/// scale * w_h . tanh(q + k).
struct AdditiveScore {
  const Tensor& score_vector;    ///< w
  const Tensor* d_score_vector;  ///< null in the forward pass
  float scale;

  float query_scale() const { return 1.0F; }
  float gradient_scale() const { return scale; }

  const float* vector_of(const Tensor& tensor, int64_t head) const {
    return tensor.data<float>() + head * tensor.row_stride();
  }

  void Scores(int64_t head, const QueryBlock& block, const HeadScratch& scratch) const {
    const float* w = vector_of(score_vector, head);
    const int64_t width = score_vector.columns();
    ForVectors(block.queries, [&](auto d, int64_t column) HWY_ATTR {
      const int64_t end = block.seen(column + static_cast<int64_t>(hn::Lanes(d)) - 1);
      for (int64_t key = 0; key < end; ++key) {
        const float* key_row = scratch.keys + key * scratch.key_stride;
        auto sum = hn::Zero(d);
        for (int64_t c = 0; c < width; ++c) {
          const auto query = hn::LoadU(d, scratch.queries + c * block.stride + column);
          const auto bent = Tanh(d, hn::Add(query, hn::Set(d, key_row[c])));
          sum = hn::MulAdd(bent, hn::Set(d, w[c] * scale), sum);
        }
        hn::StoreU(sum, d, scratch.scores + key * block.stride + column);
      }
    });
  }

  /// Here the lanes are the head's columns.
  void Gradients(int64_t head, const QueryBlock& block, const HeadScratch& scratch) const {
    const FloatTag d;
    const auto one = hn::Set(d, 1.0F);
    const int64_t width = score_vector.columns(), stride = scratch.key_stride;
    float* const d_w = d_score_vector->data<float>() + head * d_score_vector->row_stride();
    for (int64_t column = 0; column < width; column += FloatLanes()) {
      const auto w = LoadSome(d, vector_of(score_vector, head) + column, width - column);
      auto d_vector = hn::Zero(d);
      for (int64_t i = 0; i < block.queries; ++i) {
        const auto query = hn::LoadU(d, scratch.query_rows + i * stride + column);
        auto d_query = hn::Zero(d);
        const int64_t seen = block.seen(i);
        for (int64_t j = 0; j < seen; ++j) {
          const auto d_score = hn::Set(d, scratch.d_scores[j * block.stride + i]);
          const auto key = hn::LoadU(d, scratch.keys + j * stride + column);
          const auto bent = Tanh(d, hn::Add(query, key));
          const auto slope = hn::NegMulAdd(bent, bent, one);
          const auto gradient = hn::Mul(hn::Mul(d_score, w), slope);
          float* d_key = scratch.d_keys + j * stride + column;
          hn::StoreU(hn::Add(hn::LoadU(d, d_key), gradient), d, d_key);
          d_query = hn::Add(d_query, gradient);
          d_vector = hn::MulAdd(d_score, bent, d_vector);
        }
        hn::StoreU(d_query, d, scratch.out + i * stride + column);
      }
      const auto before = LoadSome(d, d_w + column, width - column);
      StoreSome(hn::MulAdd(d_vector, hn::Set(d, scale), before), d, d_w + column, width - column);
    }
  }
};

void Forward(const AttentionShape& shape, const Tensor& q, const Tensor& k, const Tensor& v,
             const Tensor& score_vector, const Tensor& out) {
  const AdditiveScore score{score_vector, nullptr, shape.scale};
  if (q.dtype() == DType::kFloat32) {
    ForwardHeads<float>(shape, q, k, v, score, out);
  } else {
    ForwardHeads<BFloat16>(shape, q, k, v, score, out);
  }
}

void Weights(const AttentionShape& shape, const Tensor& q, const Tensor& k,
             const Tensor& score_vector, float* out) {
  const AdditiveScore score{score_vector, nullptr, shape.scale};
  if (q.dtype() == DType::kFloat32) {
    WeighHeads<float>(shape, q, k, score, out);
  } else {
    WeighHeads<BFloat16>(shape, q, k, score, out);
  }
}

void Backward(const AttentionShape& shape, const Tensor& q, const Tensor& k, const Tensor& v,
              const Tensor& score_vector, const Tensor& d_out, const Tensor& d_q, const Tensor& d_k,
              const Tensor& d_v, const Tensor& d_score_vector) {
  const AdditiveScore score{score_vector, &d_score_vector, shape.scale};
  if (q.dtype() == DType::kFloat32) {
    BackwardHeads<float>(shape, q, k, v, score, d_out, d_q, d_k, d_v);
  } else {
    BackwardHeads<BFloat16>(shape, q, k, v, score, d_out, d_q, d_k, d_v);
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

void additive_attention_forward(const AttentionShape& shape, const Tensor& q, const Tensor& k,
                                const Tensor& v, const Tensor& score_vector, const Tensor& out) {
  constexpr const char* kWhat = "additive_attention_forward";
  check_attention(kWhat, shape, q, k, v);
  check_matrix(kWhat, "score_vector", score_vector, shape.heads, shape.key_width, DType::kFloat32);
  check_matrix(kWhat, "out", out, q.rows(), shape.heads * shape.value_width, q.dtype());
  HWY_DYNAMIC_DISPATCH(Forward)(shape, q, k, v, score_vector, out);
}

void additive_attention_backward(const AttentionShape& shape, const Tensor& q, const Tensor& k,
                                 const Tensor& v, const Tensor& score_vector, const Tensor& d_out,
                                 const Tensor& d_q, const Tensor& d_k, const Tensor& d_v,
                                 const Tensor& d_score_vector) {
  constexpr const char* kWhat = "additive_attention_backward";
  check_attention(kWhat, shape, q, k, v);
  check_matrix(kWhat, "score_vector", score_vector, shape.heads, shape.key_width, DType::kFloat32);
  check_matrix(kWhat, "d_score_vector", d_score_vector, shape.heads, shape.key_width,
               DType::kFloat32);
  check_gradients(kWhat, shape, q, k, v, d_out, d_q, d_k, d_v);
  HWY_DYNAMIC_DISPATCH(Backward)
  (shape, q, k, v, score_vector, d_out, d_q, d_k, d_v, d_score_vector);
}

void additive_attention_weights(const AttentionShape& shape, const Tensor& q, const Tensor& k,
                                const Tensor& score_vector, const Tensor& weights) {
  constexpr const char* kWhat = "additive_attention_weights";
  check_matrix(kWhat, "score_vector", score_vector, shape.heads, shape.key_width, DType::kFloat32);
  check_weights(kWhat, shape, q, k, weights);
  HWY_DYNAMIC_DISPATCH(Weights)(shape, q, k, score_vector, weights.data<float>());
}

}  // namespace attend
#endif  // HWY_ONCE
