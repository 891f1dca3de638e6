#include "attend/search/beam.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace attend {
namespace {

/// A total order, so that equal scores fall out the same way everywhere.
bool better(const Candidate& a, const Candidate& b) {
  return std::tuple(-a.log_prob, a.parent, a.token) < std::tuple(-b.log_prob, b.parent, b.token);
}

ActiveHypothesis extended(const ActiveHypothesis& parent, const Candidate& candidate) {
  ActiveHypothesis child;
  child.tokens.reserve(parent.tokens.size() + 1);
  child.tokens = parent.tokens;
  child.tokens.push_back(candidate.token);
  child.slots.reserve(parent.slots.size() + 1);  // for the token's own
  child.slots = parent.slots;
  child.log_prob = candidate.log_prob;
  return child;
}

}  // namespace

double length_penalized(double log_prob, int64_t length, double alpha) {
  return log_prob / std::pow((5 + static_cast<double>(length)) / 6, alpha);
}

Beam::Beam(int64_t max_length, const SearchTokens& tokens, const SearchOptions& options)
    : max_length_(max_length),
      beam_size_(options.beam_size),
      n_best_(options.n_best),
      length_penalty_(options.length_penalty),
      eos_(tokens.eos),
      active_(1, {.tokens = {tokens.bos}, .slots = {}}) {}

void Beam::advance(std::vector<Candidate>& candidates) {
  const auto width =
      must_end() ? std::ssize(candidates) : std::min(2 * beam_size_, std::ssize(candidates));
  std::partial_sort(candidates.begin(), candidates.begin() + width, candidates.end(), better);
  std::vector<ActiveHypothesis> next;
  next.reserve(static_cast<std::size_t>(beam_size_));
  for (int64_t rank = 0; rank < width && std::ssize(next) < beam_size_; ++rank) {
    const Candidate& candidate = candidates[static_cast<std::size_t>(rank)];
    if (candidate.token != eos_) {
      next.push_back(extended(active_[static_cast<std::size_t>(candidate.parent)], candidate));
    } else if (rank < beam_size_) {
      finish(candidate);
    }
  }
  active_ = std::move(next);
  done_ = active_.empty() || (std::ssize(finished_) == n_best_ && !can_still_win());
}

void Beam::finish(const Candidate& candidate) {
  const ActiveHypothesis& parent = active_[static_cast<std::size_t>(candidate.parent)];
  const int64_t length = active_length() + 1;  // the end of sentence counts
  Hypothesis hypothesis{.tokens = {parent.tokens.begin() + 1, parent.tokens.end()},
                        .log_prob = candidate.log_prob,
                        .score = length_penalized(candidate.log_prob, length, length_penalty_)};
  const auto place =
      std::upper_bound(finished_.begin(), finished_.end(), hypothesis,
                       [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
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
