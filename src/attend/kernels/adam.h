#pragma once

#include <cstdint>

#include "attend/tensor/tensor.h"

namespace attend {

/// One step of Adam (Kingma & Ba 2015) or AdamW (Loshchilov & Hutter 2019) over elements
/// [begin, end) of flat tensors, in one pass: clipping, moments, weights, their copy in the compute
/// dtype, the moving average, and the gradient set to zero for the next step.
struct AdamStep {
  double learning_rate = 0;
  double beta1 = 0.9;
  double beta2 = 0.98;
  double epsilon = 1e-9;
  double weight_decay = 0;
  bool decoupled = false;     ///< AdamW: weights shrink directly; else decay joins the gradient
  double gradient_scale = 1;  ///< of clipping
  int64_t step = 1;           ///< counted from 1, for the bias correction
  double ema_decay = 0;       ///< 0: no moving average

  Tensor weights, gradient, first_moment, second_moment;  ///< float32
  Tensor compute_copy;  ///< of the weights; undefined where the weights themselves are used
  Tensor average;       ///< float32; undefined without ema_decay
};
void adam_step(const AdamStep& op, int64_t begin, int64_t end);

/// Σ x² over elements [begin, end) of a flat float32 tensor; not finite where any element is not.
double sum_of_squares(const Tensor& flat, int64_t begin, int64_t end);

}  // namespace attend
