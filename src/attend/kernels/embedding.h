#pragma once

#include <cstdint>
#include <span>

#include "attend/kernels/dropout.h"
#include "attend/tensor/tensor.h"

namespace attend {

/// out[t] = dropout(table[ids[t]] · scale · factors[t] + positions[position of t]) (Vaswani et al.
/// 2017, §3.4, §3.5, §5.4). The sequences lie end to end; sequence s begins at offsets[s], and its
/// first token stands at first_positions[s] (0 where that span is empty).
struct EmbeddingForward {
  std::span<const int32_t> ids;
  std::span<const int64_t> offsets;
  std::span<const int64_t> first_positions;
  Tensor table;                    ///< float32, or int8 with scales, [vocabulary, d_model]
  Tensor table_scales;             ///< float32 [vocabulary], of an int8 table
  float scale = 1;                 ///< √d_model
  std::span<const float> factors;  ///< of the tokens (word dropout); empty: all 1
  Tensor positions;  ///< float32 [at least the longest sequence, d_model]; undefined: none
  Dropout dropout;
  Tensor out;          ///< result, float32 [tokens, d_model]
  Tensor out_compute;  ///< result in the compute dtype; may be undefined
};
/// Throws Error for an id outside the table or a position past `positions`.
void embedding_forward(const EmbeddingForward& op);

/// rows = dropout's mask · (d_out1 + d_out2), float32 [tokens, d_model]; either may be undefined.
void embedding_backward(const Dropout& dropout, const Tensor& d_out1, const Tensor& d_out2,
                        const Tensor& rows);

/// table[ids[t]] += rows[t] · scale · factors[t], in the order of t, for ids in [first_id,
/// last_id). Without factors they are all 1.
void scatter_add(std::span<const int32_t> ids, const Tensor& rows, float scale,
                 std::span<const float> factors, const Tensor& table, int64_t first_id,
                 int64_t last_id);

/// PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos(same) (§3.5), float32
/// [positions, d_model].
Tensor sinusoidal_positions(int64_t positions, int64_t d_model);

}  // namespace attend
