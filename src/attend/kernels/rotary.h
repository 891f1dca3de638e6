#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attend/tensor/tensor.h"

namespace attend {

/// The position in its sequence of every token of a batch: 0, 1, ... from each offset on.
std::vector<int32_t> positions_in_sequences(std::span<const int64_t> offsets);

/// Rotary positions (Su et al. 2021, "RoFormer", §3.2): turns each adjacent pair (2i, 2i + 1) of
/// each head's columns by the angle position * 10000^(-2i / width), width = columns / heads.
///
/// x and out [tokens, columns] are float32 or bfloat16 (the same), may be column slices, and may be
/// one tensor. positions has one entry a row. Throws Error where a head's width is odd or shapes do
/// not fit one another.
void rotary_forward(const Tensor& x, std::span<const int32_t> positions, int64_t heads,
                    const Tensor& out);

/// The gradient of rotary_forward: turns back by the same angles. d_x is overwritten and may be
/// d_out.
void rotary_backward(const Tensor& d_out, std::span<const int32_t> positions, int64_t heads,
                     const Tensor& d_x);

}  // namespace attend
