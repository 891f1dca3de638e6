#include "attend/search/step_scores.h"

#include <algorithm>

#include "attend/base/profile.h"
#include "attend/kernels/log_probs.h"
#include "attend/kernels/softmax.h"

namespace attend {

Tensor StepScorer::logits(std::size_t model, const Tensor& hidden) {
  return models_[model].model->logits(models_[model].context, Variable(hidden, hidden.dtype()));
}

/// float32 [rows, target vocabulary].
Tensor StepScorer::log_probs(std::span<const Tensor> hidden) {
  std::vector<Tensor> scores;
  for (std::size_t i = 0; i < hidden.size(); ++i) scores.push_back(logits(i, hidden[i]));
  const ProfileScope scope("log probabilities");
  mean_log_probs(scores);
  return scores.front();
}

std::span<StepScores> StepScorer::best(std::span<const Tensor> hidden, int64_t width) {
  const Tensor scores = hidden.size() == 1 ? logits(0, hidden[0]) : log_probs(hidden);
  const ProfileScope scope("top scores");
  width = std::min(width, scores.columns());
  const TopScores top = top_scores(scores, width);
  tokens_ = top.indices;
  token_log_probs_.resize(top.scores.size());
  rows_.resize(top.log_sums.size());
  const auto count = static_cast<std::size_t>(width);
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    const float log_sum = top.log_sums[row];
    const float* eos = scores.data<float>() + static_cast<int64_t>(row) * scores.row_stride();
    for (std::size_t i = row * count; i < (row + 1) * count; ++i) {
      token_log_probs_[i] = top.scores[i] - log_sum;
    }
    rows_[row] = {.tokens = {tokens_.data() + row * count, count},
                  .log_probs = {token_log_probs_.data() + row * count, count},
                  .all = {},
                  .eos_log_prob = eos[eos_] - log_sum,
                  .attention = {}};
  }
  return rows_;
}

std::span<StepScores> StepScorer::all(std::span<const Tensor> hidden) {
  all_ = log_probs(hidden);
  rows_.resize(static_cast<std::size_t>(all_.rows()));
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    const float* scores = all_.data<float>() + static_cast<int64_t>(row) * all_.row_stride();
    rows_[row] = {.tokens = {},
                  .log_probs = {},
                  .all = {scores, static_cast<std::size_t>(all_.columns())},
                  .eos_log_prob = scores[eos_],
                  .attention = {}};
  }
  return rows_;
}

}  // namespace attend
