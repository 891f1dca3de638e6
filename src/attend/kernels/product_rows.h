// What goes into a product with a packed weight and what is made of its sums.
#pragma once

#include "attend/kernels/packed_matrix.h"

namespace attend {

/// The rows of x, float32 or bfloat16, in `dtype`, end to end; int8 writes unsigned bytes and how
/// each row became them.
void pack_rows(const Tensor& x, DType dtype, std::byte* to, QuantizedRow* rows);

/// The tile's place in y, float32 or bfloat16 = sums · row scale · column scale + bias.
void finish_rows(const ProductTile& tile, const Tensor& bias, const Tensor& y);

}  // namespace attend
