// What goes into a product with a packed weight and what is made of its sums.
#pragma once

#include "attend/kernels/packed_matrix.h"

namespace attend {

/// The rows of x, float32 or bfloat16, in `dtype`, float32 or bfloat16, end to end.
void pack_rows(const Tensor& x, DType dtype, std::byte* to);

/// The tile's place in y, float32 or bfloat16 = sums + bias; the tile is not of int8.
void finish_rows(const ProductTile& tile, const Tensor& bias, const Tensor& y);

}  // namespace attend
