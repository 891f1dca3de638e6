#include "attend/search/step_scores.h"

#include <algorithm>
#include <array>
#include <limits>

#include "attend/base/profile.h"
#include "attend/kernels/log_probs.h"

namespace attend {

/// float32 [rows, listed or target vocabulary].
Tensor StepScorer::logits(std::size_t model, const Tensor& hidden,
                          std::span<const int32_t> listed) {
  PoolModel& each = models_[model];
  const Variable rows(hidden, hidden.dtype());
  return listed.empty() ? each.model->logits(each.context, rows)
                        : each.model->logits_of(each.context, rows, listed);
}

/// Likewise.
Tensor StepScorer::log_probs(std::span<const Tensor> hidden, std::span<const int32_t> listed) {
  std::vector<Tensor> scores;
  for (std::size_t i = 0; i < hidden.size(); ++i) scores.push_back(logits(i, hidden[i], listed));
  const ProfileScope scope("log probabilities");
  mean_log_probs(scores);
  return scores.front();
}

/// Into top_, with tokens for indices.
void StepScorer::find_best(std::span<const Tensor> hidden, int64_t width,
                           std::span<const int32_t> listed) {
  if (listed.empty() && hidden.size() == 1) {
    PoolModel& only = models_.front();
    only.model->best_tokens(
        only.context, Variable(hidden[0], hidden[0].dtype()),
        {.best = width, .scores = std::array{eos_}, .log_sums = needs_log_probs_}, top_);
    return;
  }
  const Tensor scores =
      hidden.size() == 1 ? logits(0, hidden[0], listed) : log_probs(hidden, listed);
  const auto eos = std::lower_bound(listed.begin(), listed.end(), eos_) - listed.begin();
  const std::array ends{listed.empty() ? eos_ : static_cast<int32_t>(eos)};
  top_scores(scores, {.best = width, .scores = ends}, top_);
  if (listed.empty()) return;
  for (int32_t& index : top_.indices) index = listed[static_cast<std::size_t>(index)];
}

std::span<StepScores> StepScorer::best(std::span<const Tensor> hidden, int64_t width,
                                       std::span<const int32_t> listed) {
  width = std::min(width, listed.empty() ? models_.front().model->config().target_vocabulary_size
                                         : std::ssize(listed));
  find_best(hidden, width, listed);
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

namespace {

/// float32 [rows, vocabulary]: -infinity for what is not listed.
Tensor spread(const Tensor& scores, std::span<const int32_t> listed, int64_t vocabulary) {
  const Tensor made({scores.rows(), vocabulary}, DType::kFloat32);
  for (int64_t row = 0; row < scores.rows(); ++row) {
    float* to = made.data<float>() + row * vocabulary;
    const float* from = scores.data<float>() + row * scores.row_stride();
    std::fill_n(to, vocabulary, -std::numeric_limits<float>::infinity());
    for (const int32_t token : listed) to[token] = *from++;
  }
  return made;
}

}  // namespace

std::span<StepScores> StepScorer::all(std::span<const Tensor> hidden,
                                      std::span<const int32_t> listed) {
  all_ = log_probs(hidden, listed);
  if (!listed.empty()) {
    all_ = spread(all_, listed, models_.front().model->config().target_vocabulary_size);
  }
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
