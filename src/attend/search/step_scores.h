#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attend/search/beam.h"
#include "attend/search/decoder_caches.h"

namespace attend {

/// What a step offers the hypotheses: log P of their next tokens. Of an ensemble, the logarithm of
/// the mean of its models' probabilities. Where log P is not needed, that of the best token may be
/// 0 and the others' what they are below it.
///
/// Where `listed` is not empty, the tokens are those alone, in order, with the end of sentence
/// among them; probabilities are those among them, and all others have none.
class StepScorer {
 public:
  StepScorer(std::span<PoolModel> models, int32_t eos, bool needs_log_probs)
      : models_(models), eos_(eos), needs_log_probs_(needs_log_probs) {}

  /// The `width` best tokens of each row. hidden: the models' decoder outputs, [rows, d_model].
  std::span<StepScores> best(std::span<const Tensor> hidden, int64_t width,
                             std::span<const int32_t> listed = {});
  /// Every token of each row.
  std::span<StepScores> all(std::span<const Tensor> hidden, std::span<const int32_t> listed = {});

 private:
  Tensor logits(std::size_t model, const Tensor& hidden, std::span<const int32_t> listed);
  Tensor log_probs(std::span<const Tensor> hidden, std::span<const int32_t> listed);
  void find_best(std::span<const Tensor> hidden, int64_t width, std::span<const int32_t> listed);

  std::span<PoolModel> models_;
  int32_t eos_;
  bool needs_log_probs_;
  std::vector<StepScores> rows_;
  TopScores top_;
  Tensor all_;
};

}  // namespace attend
