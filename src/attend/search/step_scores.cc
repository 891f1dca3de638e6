#include "attend/search/step_scores.h"

#include <algorithm>
#include <array>

#include "attend/base/profile.h"
#include "attend/kernels/log_probs.h"

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
  const Transformer& model = *models_.front().model;
  width = std::min(width, model.config().target_vocabulary_size);
  const std::array<int32_t, 1> wanted{eos_};
  if (hidden.size() == 1) {
    model.best_tokens(models_.front().context, Variable(hidden[0], hidden[0].dtype()), width,
                      wanted, top_);
  } else {
    top_scores(log_probs(hidden), width, wanted, top_);
  }
  rows_.resize(top_.log_sums.size());
  const auto count = static_cast<std::size_t>(width);
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    const float log_sum = top_.log_sums[row];
    const std::span<float> scores(top_.scores.data() + row * count, count);
    for (float& score : scores) score -= log_sum;
    rows_[row] = {.tokens = {top_.indices.data() + row * count, count},
                  .log_probs = scores,
                  .all = {},
                  .eos_log_prob = top_.wanted[row] - log_sum,
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
