#pragma once

#include <cstdint>
#include <span>

#include "attend/tensor/tensor.h"

namespace attend {

/// What the loss over some tokens came to; sums, not means.
struct LossSums {
  double loss = 0;  ///< smoothed cross-entropy, nats
  double nll = 0;   ///< -log p(target), nats: perplexity is exp(nll / tokens)
  int64_t tokens = 0;
  int64_t correct = 0;  ///< tokens whose target has the highest score

  LossSums& operator+=(const LossSums& other);
};

/// Cross-entropy with label smoothing ε/V on every class (Szegedy et al. 2016, §7; Vaswani et al.
/// 2017, §5.4): (1 - ε) · -log p(target) + ε/V · Σ -log p(class), for rows of float32 logits.
/// Where `d_logits` is defined ([rows, classes], any dtype) it becomes the gradient times `scale`.
/// The logits are overwritten.
LossSums cross_entropy(const Tensor& logits, std::span<const int32_t> targets, float smoothing,
                       float scale, const Tensor& d_logits);

}  // namespace attend
