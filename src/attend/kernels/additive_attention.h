#pragma once

#include "attend/kernels/attention.h"

namespace attend {

/// As attention_forward, with the score of Bahdanau et al. 2014 ("Neural Machine Translation by
/// Jointly Learning to Align and Translate", §A.1.2): score(i, j) = w_h . tanh(q_i + k_j) for head
/// h. q and k are the projected queries and keys. score_vector holds w: float32 [heads, key_width].
/// shape.scale multiplies the score; the paper has 1.
void additive_attention_forward(const AttentionShape& shape, const Tensor& q, const Tensor& k,
                                const Tensor& v, const Tensor& score_vector, const Tensor& out);

/// Gradients of additive_attention_forward. d_q, d_k and d_v are overwritten; that of the score
/// vector is added to d_score_vector (float32 [heads, key_width]).
void additive_attention_backward(const AttentionShape& shape, const Tensor& q, const Tensor& k,
                                 const Tensor& v, const Tensor& score_vector, const Tensor& d_out,
                                 const Tensor& d_q, const Tensor& d_k, const Tensor& d_v,
                                 const Tensor& d_score_vector);

/// As attention_weights.
void additive_attention_weights(const AttentionShape& shape, const Tensor& q, const Tensor& k,
                                const Tensor& score_vector, const Tensor& weights);

}  // namespace attend
