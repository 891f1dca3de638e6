#pragma once

#include <span>

#include "attend/tensor/tensor.h"

namespace attend {

/// The logarithm of the mean of some models' probabilities, log (1/M · Σ softmax(logits_m)), row by
/// row, in the place of the first one's logits; of one model, log softmax. Each float32 [rows,
/// classes]. The others' are used up. A row with a score that is no number has none in the end.
void mean_log_probs(std::span<const Tensor> logits);

/// The mean of tensors of one shape, float32, in the place of the first.
void mean_of(std::span<const Tensor> tensors);

}  // namespace attend
