#pragma once

#include "attend/tensor/tensor.h"

namespace attend {

enum class Transpose : bool { kNo, kYes };

/// What a matrix product does besides multiplying.
struct GemmOptions {
  const Tensor* bias = nullptr;  ///< float32 [columns of c], added to every row
  bool accumulate = false;       ///< c += a · b instead of c = a · b
};

/// c = op(a) · op(b), row-major, on the calling thread alone. a and b have one dtype (float32 or
/// bfloat16); c is float32 or that dtype; sums are float32. Views with a row stride are welcome.
/// With b transposed and a not, as a layer's weight is in its forward pass, a row of the result
/// depends on no other row and not on how many rows there are, to the bit.
/// Throws Error where shapes or dtypes do not fit.
void gemm(const Tensor& a, Transpose transpose_a, const Tensor& b, Transpose transpose_b,
          const Tensor& c, const GemmOptions& options = {});

/// True where this CPU multiplies bfloat16 in hardware.
bool has_bfloat16_arithmetic();

/// True where it does so faster than float32. Measured (docs/performance.md): twice as fast on
/// AMD's Zen 4, half as fast on an Intel Xeon that shows no AMX; other AMD cores, AMX and Cooper
/// Lake are taken to be faster. Found from what the CPU says it is, not by a stopwatch, so that
/// every run on a machine computes alike.
bool prefers_bfloat16();

/// True where this CPU multiplies int8 in hardware, without overflow.
bool has_int8_arithmetic();

/// Rate of the matrix library at 1024 × 512 × 512 on one core, in FLOP/s: the best of `seconds` of
/// trying. `name_gemm_library` says which library and version.
double measure_gemm_rate(DType dtype, double seconds = 0.5);
std::string name_gemm_library();

}  // namespace attend
