#pragma once

#include "attend/kernels/dropout.h"
#include "attend/tensor/tensor.h"

namespace attend {

/// The sub-layer wrapper in one pass (Vaswani et al. 2017, §3.1, §5.4; Ba et al. 2016):
///   sum = x + dropout(y)          [rows, d_model] float32
///   out = LayerNorm(sum)          float32 and, where asked for, in the compute dtype too
/// Everything but x is optional (an undefined tensor): without y it is a plain LayerNorm, without
/// gain a plain residual sum. Arithmetic is float32.
struct ResidualNormForward {
  Tensor x;  ///< float32
  Tensor y;  ///< the sub-layer's output, any dtype
  Dropout dropout;
  Tensor gain, bias;   ///< float32 [d_model]
  Tensor sum;          ///< result, float32; may be undefined where y is
  Tensor out;          ///< result, float32
  Tensor out_compute;  ///< result, compute dtype
  Tensor statistics;   ///< result, float32 [rows, 2]: mean and 1 / standard deviation
};
constexpr float kNormEpsilon = 1e-5F;
void residual_norm_forward(const ResidualNormForward& op);

/// Gradients of the above. d_sum is the gradient that reaches `sum` directly (pre-norm's residual);
/// d_out1 and d_out2 those that reach the two forms of `out`; any may be undefined.
struct ResidualNormBackward {
  Tensor sum, gain, statistics;  ///< of the forward pass; `sum` is x where there was no y
  Dropout dropout;
  Tensor d_sum, d_out1, d_out2;  ///< float32
  Tensor dx;                     ///< result, float32; may be the same tensor as d_sum
  bool accumulate_dx = false;
  Tensor dy;              ///< result, the dtype of y; undefined without y
  Tensor d_gain, d_bias;  ///< results, float32 [d_model], overwritten; undefined without gain
};
void residual_norm_backward(const ResidualNormBackward& op);

}  // namespace attend
