#include "attend/search/beam.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace attend {

double length_penalized(double log_prob, int64_t length, double alpha) {
  return log_prob / std::pow((5 + static_cast<double>(length)) / 6, alpha);
}

Beam::Beam(const SearchRequest& request, int64_t longest, const SearchTokens& tokens,
           const SearchOptions& options)
    : tokens_(&tokens),
      max_length_(std::min(std::ssize(request.source) + options.max_extra_length, longest)),
      beam_size_(options.beam_size),
      n_best_(options.n_best),
      length_penalty_(options.length_penalty),
      active_(static_cast<std::size_t>(options.hypotheses())),
      next_(active_.size()) {
  active_.front().token = tokens.bos;
}

int64_t Beam::width() const { return 2 * beam_size_ + 1 + std::ssize(tokens_->suppressed); }

/// A total order, so that equal scores fall out the same way everywhere.
bool Beam::better(const Candidate& a, const Candidate& b) {
  return std::tuple(-a.log_prob, a.parent, a.token) < std::tuple(-b.log_prob, b.parent, b.token);
}

bool Beam::refuses(int32_t token) const {
  return token == tokens_->bos || std::find(tokens_->suppressed.begin(), tokens_->suppressed.end(),
                                            token) != tokens_->suppressed.end();
}

void Beam::offer(const StepScores& row, int32_t rank) {
  const double log_prob = active_[static_cast<std::size_t>(rank)].log_prob;
  const auto add = [&](int32_t token, float token_log_prob) {
    candidates_.push_back(
        {log_prob + static_cast<double>(token_log_prob), rank, token, token_log_prob});
  };
  if (must_end()) {
    add(tokens_->eos, row.eos_log_prob);
    return;
  }
  for (std::size_t i = 0; i < row.tokens.size(); ++i) {
    if (!refuses(row.tokens[i])) add(row.tokens[i], row.log_probs[i]);
  }
}

void Beam::advance(std::span<const StepScores> rows) {
  candidates_.clear();
  for (std::size_t i = 0; i < rows.size(); ++i) offer(rows[i], static_cast<int32_t>(i));
  const auto width =
      must_end() ? std::ssize(candidates_) : std::min(2 * beam_size_, std::ssize(candidates_));
  std::partial_sort(candidates_.begin(), candidates_.begin() + width, candidates_.end(), better);
  next_count_ = 0;
  for (int64_t rank = 0; rank < width && std::cmp_less(next_count_, beam_size_); ++rank) {
    const Candidate& candidate = candidates_[static_cast<std::size_t>(rank)];
    if (candidate.token != tokens_->eos) {
      extend(candidate);
    } else if (rank < beam_size_) {
      finish(candidate);
    }
  }
  active_.swap(next_);
  count_ = next_count_;
  ++length_;
  done_ = count_ == 0 || (std::ssize(finished_) == n_best_ && !can_still_win());
}

void Beam::extend(const Candidate& candidate) {
  const ActiveHypothesis& parent = active_[static_cast<std::size_t>(candidate.parent)];
  ActiveHypothesis& child = next_[next_count_++];
  child.token = candidate.token;
  child.parent = candidate.parent;
  child.node = static_cast<int32_t>(nodes_.size());
  child.log_prob = candidate.log_prob;
  child.slots.assign(parent.slots.begin(), parent.slots.end());
  nodes_.push_back({parent.node, candidate.token, candidate.token_log_prob});
}

void Beam::finish(const Candidate& candidate) {
  const int64_t length = length_ + 1;  // the end of sentence counts
  const double score = length_penalized(candidate.log_prob, length, length_penalty_);
  const auto place = std::upper_bound(finished_.begin(), finished_.end(), score,
                                      [](double a, const Hypothesis& b) { return a > b.score; });
  if (place == finished_.end() && std::ssize(finished_) == n_best_) return;
  Hypothesis hypothesis{.tokens = std::vector<int32_t>(static_cast<std::size_t>(length_)),
                        .token_log_probs = std::vector<float>(static_cast<std::size_t>(length)),
                        .log_prob = candidate.log_prob,
                        .score = score};
  hypothesis.token_log_probs.back() = candidate.token_log_prob;
  int32_t node = active_[static_cast<std::size_t>(candidate.parent)].node;
  for (std::size_t i = hypothesis.tokens.size(); i-- > 0;) {
    const Node& link = nodes_[static_cast<std::size_t>(node)];
    hypothesis.tokens[i] = link.token;
    hypothesis.token_log_probs[i] = link.log_prob;
    node = link.parent;
  }
  finished_.insert(place, std::move(hypothesis));
  if (std::ssize(finished_) > n_best_) finished_.pop_back();
}

bool Beam::can_still_win() const {
  if (beam_size_ == 1) return false;
  // log P only falls, and the penalty divides it by no more than at the greatest length.
  const double bound = length_penalized(active_.front().log_prob, max_length_ + 1, length_penalty_);
  return bound > finished_.back().score;
}

std::vector<Hypothesis> Beam::take_best() { return std::move(finished_); }

}  // namespace attend
