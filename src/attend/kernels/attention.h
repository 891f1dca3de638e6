#pragma once

#include <cstdint>
#include <span>

#include "attend/kernels/dropout.h"
#include "attend/tensor/tensor.h"

namespace attend {

/// How queries meet keys. A batch is its tokens end to end; the offsets say where each sequence
/// starts. They have one entry more than there are sequences and start with 0; sequence s has the
/// tokens [offsets[s], offsets[s + 1]). Queries of a sequence meet the keys of the same sequence.
struct AttentionShape {
  int64_t heads = 1;
  int64_t key_width = 0;    ///< of a head's queries and keys, d_k
  int64_t value_width = 0;  ///< of a head's values, d_v
  std::span<const int64_t> query_offsets;
  std::span<const int64_t> key_offsets;
  /// Query i of a sequence sees the keys 0 to i alone. Later keys and values are not read for it.
  bool causal = false;
  float scale = 1.0F;  ///< of the scores before softmax, usually 1 / sqrt(d_k)
  Dropout dropout;     ///< of the attention weights
};

/// Multi-head scaled dot-product attention (Vaswani et al. 2017, §3.2):
/// out = dropout(softmax(scale * q k^T)) v for every sequence and head.
///
/// q [query tokens, heads * key_width], k [key tokens, heads * key_width], v [key tokens,
/// heads * value_width] and out [query tokens, heads * value_width] are float32 or bfloat16, all
/// the same, and may be column slices of wider tensors. Arithmetic is float32. A row of out depends
/// on its own sequence alone, to the bit. Throws Error where shapes do not fit one another, or
/// where a sequence has queries but no keys.
void attention_forward(const AttentionShape& shape, const Tensor& q, const Tensor& k,
                       const Tensor& v, const Tensor& out);

/// Gradients of attention_forward, given that of out. Computes the attention weights again from q
/// and k, with the same dropout. d_q, d_k and d_v have the dtype of q, may be column slices of one
/// fused gradient, and are overwritten.
void attention_backward(const AttentionShape& shape, const Tensor& q, const Tensor& k,
                        const Tensor& v, const Tensor& d_out, const Tensor& d_q, const Tensor& d_k,
                        const Tensor& d_v);

/// The attention weights themselves, without dropout, for looking at: weights is float32 and holds
/// [heads, queries, keys] for each sequence, one sequence after the other; count_weights of them.
void attention_weights(const AttentionShape& shape, const Tensor& q, const Tensor& k,
                       const Tensor& weights);
int64_t count_weights(const AttentionShape& shape);
/// Their mean over the heads: float32 [queries, keys] for each sequence, a row's sum being 1.
void mean_over_heads(const AttentionShape& shape, const Tensor& weights, const Tensor& mean);

}  // namespace attend
