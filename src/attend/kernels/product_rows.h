// What goes into a product with a packed weight and what is made of its sums.
#pragma once

#include "attend/kernels/packed_matrix.h"

namespace attend {

/// Added to int8 activations, to make unsigned bytes of them.
constexpr int32_t kByteOffset = 128;

/// The rows of x, float32 or bfloat16, in `dtype`, end to end; int8 adds kByteOffset to each number
/// and writes a scale for each row.
void pack_rows(const Tensor& x, DType dtype, std::byte* to, float* scales);

/// The tile's place in y, float32 or bfloat16 = sums · row scale · column scale + bias.
void finish_rows(const ProductTile& tile, const Tensor& bias, const Tensor& y);

}  // namespace attend
