#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attend/search/beam.h"
#include "attend/search/decoder_caches.h"

namespace attend {

/// What a step offers the hypotheses: log P of their next tokens. Of an ensemble, the logarithm of
/// the mean of its models' probabilities.
class StepScorer {
 public:
  StepScorer(std::span<PoolModel> models, int32_t eos) : models_(models), eos_(eos) {}

  /// The `width` best tokens of each row. hidden: the models' decoder outputs, [rows, d_model].
  std::span<StepScores> best(std::span<const Tensor> hidden, int64_t width);
  /// Every token of each row.
  std::span<StepScores> all(std::span<const Tensor> hidden);

 private:
  Tensor logits(std::size_t model, const Tensor& hidden);
  Tensor log_probs(std::span<const Tensor> hidden);

  std::span<PoolModel> models_;
  int32_t eos_;
  std::vector<StepScores> rows_;
  TopScores top_;
  Tensor all_;
};

}  // namespace attend
