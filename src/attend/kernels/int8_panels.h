// Products of unsigned bytes and a weight of int8, by AVX-512 VNNI: see has_int8_arithmetic().
#pragma once

#include <cstddef>
#include <cstdint>

#include "attend/kernels/quantize.h"

namespace attend {

/// A weight of int8 [out, in] in panels of 64 output channels, laid out as a product reads it: four
/// inputs of each channel of a panel, then the next four. Sums are whole numbers, so a row's bits
/// depend on no other row.
class Int8Panels {
 public:
  explicit Int8Panels(const QuantizedMatrix& weight);

  int64_t in() const { return in_; }
  int64_t out() const { return out_; }
  /// Bytes from one row of x to the next: in, rounded up. What stands in between does not matter.
  int64_t row_bytes() const { return quads_ * 4; }
  const float* column_scales() const { return scales_.data<float>(); }  ///< [out]
  /// [out], of the weight's numbers.
  const float* column_sums() const { return column_sums_.data<float>(); }

  /// sums [rows, columns] of x [rows, row_bytes] with the channels from first_column on, a multiple
  /// of 64.
  void multiply(const uint8_t* x, int64_t rows, int64_t first_column, int64_t columns,
                int32_t* sums) const;

  /// y [rows, out], float32 or bfloat16, = (sum - zero · column sum) · row scale · column scale +
  /// bias, which is float32 [out] or undefined.
  void multiply(const uint8_t* x, const QuantizedRow* rows, const Tensor& bias,
                const Tensor& y) const;

 private:
  int64_t in_ = 0, out_ = 0, quads_ = 0;  ///< a quad is four inputs
  Tensor panels_;       ///< int8 [panels, quads, 64, 4], zeros beyond what is there
  Tensor scales_;       ///< float32, whole panels
  Tensor column_sums_;  ///< likewise
};

}  // namespace attend
