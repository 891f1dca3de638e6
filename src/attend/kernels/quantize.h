#pragma once

#include "attend/tensor/tensor.h"

namespace attend {

/// A matrix of int8 with a scale for every row: number = int8 · scale. For a weight [out, in] that
/// is a scale for every output channel.
struct QuantizedMatrix {
  Tensor values;  ///< int8 [rows, columns], from -127 to 127
  Tensor scales;  ///< float32 [rows]
};

/// Symmetric quantisation to the nearest, ties to even: scale = max |x| / 127 of each row; a row of
/// zeros has the scale 0, and a row with a number that is not finite has a scale that is none.
/// x is float32 or bfloat16.
QuantizedMatrix quantize(const Tensor& x);

/// How a row of activations became unsigned bytes: number = (byte - zero) · scale.
struct QuantizedRow {
  float scale = 0;
  float zero = 0;  ///< the byte that stands for 0, a whole number
};

/// A row's least to its greatest number, 0 among them, on 0 to 255, so that what comes out of a
/// ReLU has all of them. values: [rows, columns], from one row to the next `stride` bytes, what is
/// between is left as it is. A row with a number that is not finite has a scale that is none. x is
/// float32 or bfloat16.
void quantize_rows(const Tensor& x, uint8_t* values, int64_t stride, QuantizedRow* rows);

/// float32 [rows, columns].
Tensor dequantize(const QuantizedMatrix& matrix);

}  // namespace attend
