#pragma once

#include <cstdint>
#include <span>

#include "attend/kernels/quantize.h"
#include "attend/tensor/tensor.h"

namespace attend {

/// y[r, i] = x[r] · weight[listed[i]], for a few rows and a part of a weight that is listed anew
/// every time, so that packing it is not worth while. x float32 or bfloat16 [rows, in], weight
/// float32 or bfloat16 [out, in], y float32 [rows, listed]. A number of y depends on its row of x
/// and its row of the weight alone, to the bit. Throws Error where shapes do not fit or an index is
/// no row of the weight.
void multiply_listed(const Tensor& x, const Tensor& weight, std::span<const int32_t> listed,
                     const Tensor& y);

/// The same for int8: x is quantised row by row, the sums are whole numbers, and the results are
/// those of a PackedMatrix of the weight, to the bit.
void multiply_listed(const Tensor& x, const QuantizedMatrix& weight,
                     std::span<const int32_t> listed, const Tensor& y);

}  // namespace attend
