#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "attend/autograd/tape.h"
#include "attend/kernels/activation.h"
#include "attend/kernels/softmax.h"

namespace attend {

/// Where the sequences of a batch begin: count + 1 entries, from 0 to the number of tokens. Shared,
/// because the tape holds on to it.
using Offsets = std::shared_ptr<const std::vector<int64_t>>;

/// y = x Wᵀ + b: x [rows, in] in the compute dtype, weight [out, in], bias [out] or null.
Variable linear(Context& context, const Variable& x, Parameter& weight, Parameter* bias);

/// dropout(f(x)); x is used up (relu works in its place).
Variable activation(Context& context, const Variable& x, ActivationKind kind, float dropout);

/// The two forms of a layer's input and output: float32, to add to, and in the compute dtype, to
/// multiply. In float32 both may be one variable; the second is undefined where no norm made it.
struct Stream {
  Variable residual;  ///< float32 [tokens, d_model]
  Variable operand;   ///< compute dtype [tokens, d_model]
};

/// LayerNorm(x), for matrix products alone (pre-norm; Ba et al. 2016).
Variable layer_norm(Context& context, const Variable& x, Parameter& gain, Parameter& bias);
/// x + dropout(y), float32: pre-norm's residual.
Variable residual(Context& context, const Variable& x, const Variable& y, float dropout);
/// LayerNorm(x + dropout(y)), in both forms: post-norm (Vaswani et al. 2017, §3.1, §5.4).
Stream residual_norm(Context& context, const Variable& x, const Variable& y, float dropout,
                     Parameter& gain, Parameter& bias);

/// Token embeddings times scale and factor, plus positions, with dropout.
struct EmbeddingInput {
  std::vector<int32_t> ids;
  Offsets offsets;
  std::vector<int64_t> first_positions = {};  ///< of each sequence; empty: all 0
  std::vector<float> factors = {};            ///< of each token's embedding; empty: all 1
};
/// positions: a fixed table, or undefined; learned_positions: a parameter, or null. `with_operand`
/// asks for the compute dtype's form too (post-norm).
Stream embedding(Context& context, const EmbeddingInput& input, Parameter& table, float scale,
                 const Tensor& positions, Parameter* learned_positions, float dropout,
                 bool with_operand);

/// One kind of multi-head attention over a batch; see kernels/attention.h.
struct AttentionSettings {
  int64_t heads = 1;
  int64_t key_width = 0;
  int64_t value_width = 0;
  bool causal = false;
  float scale = 1.0F;
  float dropout = 0.0F;
  Offsets query_offsets;
  Offsets key_offsets;
  Parameter* score_vector = nullptr;  ///< of additive attention; null: scaled dot product
};
/// q, k and v side by side in one projection: [tokens, heads · (2 key_width + value_width)].
Variable self_attention(Context& context, const AttentionSettings& settings, const Variable& qkv);
/// Queries from the decoder, keys and values side by side from the encoder.
Variable cross_attention(Context& context, const AttentionSettings& settings, const Variable& q,
                         const Variable& kv);

/// What cross_attention weighs by: float32, [heads, queries, keys] of each sequence, one after the
/// other. No gradients.
Tensor cross_attention_weights(Context& context, const AttentionSettings& settings,
                               const Variable& q, const Variable& kv);

/// Turns the first `columns` columns of x (queries and keys, `heads` heads in all) by their rotary
/// positions, in place.
void rotate(Context& context, const Variable& x,
            std::shared_ptr<const std::vector<int32_t>> positions, int64_t columns, int64_t heads);

/// Output projection, softmax and label-smoothed cross-entropy in one op, tiled over rows. With a
/// tape, the gradients of hidden and of the table (times gradient_scale) are made in the same
/// visit. hidden [tokens, d_model] in the compute dtype, table [classes, d_model].
///
/// With r_drop above 0, hidden holds two copies of the tokens, one after the other, and the loss is
/// that of r_drop_cross_entropy.
LossSums project_cross_entropy(Context& context, const Variable& hidden, Parameter& table,
                               std::span<const int32_t> targets, float label_smoothing,
                               float gradient_scale, float r_drop = 0);

}  // namespace attend
