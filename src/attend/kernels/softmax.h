#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "attend/tensor/tensor.h"

namespace attend {

/// What the loss over some tokens came to; sums, not means.
struct LossSums {
  double loss = 0;        ///< smoothed cross-entropy, nats
  double nll = 0;         ///< -log p(target), nats: perplexity is exp(nll / tokens)
  double divergence = 0;  ///< R-Drop's ½ (KL(P₁‖P₂) + KL(P₂‖P₁)), nats
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

/// R-Drop (Wu, Liang et al. 2021, "R-Drop: Regularized Dropout for Neural Networks", §2.1), for the
/// logits of two passes over the same tokens: the mean over both of the cross-entropy above, plus
/// alpha / 2 times the divergence (½ of KL either way), with gradients through both. That is half
/// of the paper's loss, so that alpha is the paper's and the size of gradients that of one pass.
///
/// The sums count every token once: loss and nll are means over both passes, without the
/// divergence, which stands by itself; correct is of the first pass.
LossSums r_drop_cross_entropy(const std::array<Tensor, 2>& logits, std::span<const int32_t> targets,
                              float smoothing, float alpha, float scale,
                              const std::array<Tensor, 2>& d_logits);

}  // namespace attend
