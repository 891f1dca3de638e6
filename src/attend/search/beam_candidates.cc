#include <algorithm>
#include <limits>
#include <utility>

#include "attend/base/error.h"
#include "attend/search/beam.h"

namespace attend {
namespace {

/// Of the i-th of the tokens that are ranked.
float ranked_log_prob(const StepScores& row, std::span<const int32_t> tokens, std::size_t i) {
  return row.all.empty() ? row.log_probs[i] : row.all[static_cast<std::size_t>(tokens[i])];
}

}  // namespace

/// The tokens of an active hypothesis, with room for one more.
std::span<const int32_t> Beam::history(std::size_t rank) {
  history_.resize(static_cast<std::size_t>(length_) + 1);
  int32_t node = active_[rank].node;
  for (auto i = static_cast<std::size_t>(length_); i-- > 0;) {
    const Node& link = nodes_[static_cast<std::size_t>(node)];
    history_[i] = link.token;
    node = link.parent;
  }
  return std::span(history_).first(static_cast<std::size_t>(length_));
}

/// No more than this asked for: what else is in the step must not show (contract 6).
std::span<const int32_t> Beam::ranked_tokens(const StepScores& row) {
  const auto width = static_cast<std::size_t>(width_);
  if (row.all.empty()) return row.tokens.first(std::min(width, row.tokens.size()));
  best_tokens(row.all, width, ranked_);
  // What a shortlist does not list is impossible.
  const auto is_possible = [&](int32_t token) {
    return row.all[static_cast<std::size_t>(token)] > -std::numeric_limits<float>::infinity();
  };
  while (!ranked_.empty() && !is_possible(ranked_.back())) ranked_.pop_back();
  return ranked_;
}

/// Of a token that a constraint asks for.
float Beam::log_prob_of(const StepScores& row, int32_t token) {
  if (token < 0 || std::cmp_greater_equal(token, row.all.size())) {
    fail("a prefix or a required phrase has the token {}; the model's vocabulary has {}", token,
         row.all.size());
  }
  return row.all[static_cast<std::size_t>(token)];
}

Candidate Beam::candidate(std::size_t rank, int32_t token, float log_prob) const {
  log_prob = std::min(log_prob, 0.0F);  // P is 1 at most, whatever rounding adds: see find_reach()
  const double weighted = rules_.weigh(token, log_prob);
  return {.rank_score = active_[rank].rank_score + weighted - diversity_penalty(token),
          .parent = static_cast<int32_t>(rank),
          .token = token,
          .token_log_prob = log_prob,
          .weighted_token_log_prob = weighted,
          .sample = active_[rank].sample};
}

double Beam::diversity_penalty(int32_t token) const {
  if (groups_.size() == 1) return 0;
  const auto same =
      std::count_if(next_.begin(), next_.begin() + static_cast<std::ptrdiff_t>(next_count_),
                    [token](const ActiveHypothesis& other) { return other.token == token; });
  return options_.diversity_strength * static_cast<double>(same);
}

void Beam::look_at(std::size_t rank) {
  rules_.look_at(length_, rules_.need_history() ? history(rank) : std::span<const int32_t>());
}

void Beam::offer(const StepScores& row, std::size_t rank) {
  look_at(rank);
  const auto tokens = ranked_tokens(row);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (rules_.refuses(tokens[i])) continue;
    candidates_.push_back(candidate(rank, tokens[i], ranked_log_prob(row, tokens, i)));
  }
}

/// Tokens that bring a required phrase nearer are offered whatever the rules say.
void Beam::offer_required(const StepScores& row, std::size_t rank) {
  const auto tokens_so_far = history(rank);
  rules_.look_at(length_, tokens_so_far);
  required_.next_tokens(active_[rank].met, tokens_so_far, required_next_);
  for (const int32_t token : required_next_) {
    add_banked(rank, candidate(rank, token, log_prob_of(row, token)));
  }
  const auto tokens = ranked_tokens(row);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (rules_.refuses(tokens[i])) continue;
    if (std::binary_search(required_next_.begin(), required_next_.end(), tokens[i])) continue;
    add_banked(rank, candidate(rank, tokens[i], ranked_log_prob(row, tokens, i)));
  }
}

/// Unless the required phrases would no longer fit.
void Beam::add_banked(std::size_t rank, const Candidate& candidate) {
  const uint64_t met = active_[rank].met;
  const auto before = std::span(history_).first(static_cast<std::size_t>(length_));
  if (candidate.token == tokens_->eos) {
    if (required_.needed(met, before) == 0) banked_.push_back({candidate, 0});
    return;
  }
  history_.back() = candidate.token;
  const int64_t needed = required_.needed(required_.met_after(met, history_), history_);
  if (needed < max_length_ - length_) banked_.push_back({candidate, needed});
}

/// Chooses what one sample puts out next; where nothing may follow, it ends.
void Beam::draw(const StepScores& row, std::size_t rank, int32_t sample) {
  look_at(rank);
  candidates_.clear();
  weighted_.clear();
  const auto add = [&](int32_t token, float token_log_prob) {
    if (rules_.refuses(token)) return;
    candidates_.push_back(candidate(rank, token, token_log_prob));
    weighted_.push_back(candidates_.back().weighted_token_log_prob);
  };
  if (row.all.empty() || options_.sampling_top_k > 0) {
    const auto tokens = ranked_tokens(row);
    for (std::size_t i = 0; i < tokens.size(); ++i) add(tokens[i], ranked_log_prob(row, tokens, i));
  } else {
    for (std::size_t i = 0; i < row.all.size(); ++i) add(static_cast<int32_t>(i), row.all[i]);
  }
  if (candidates_.empty()) candidates_.push_back(candidate(rank, tokens_->eos, row.eos_log_prob));
  const std::size_t drawn = weighted_.empty() ? 0 : sampler_->draw(weighted_, sample, length_);
  Candidate& chosen = candidates_[drawn];
  chosen.sample = sample;
  (chosen.token == tokens_->eos ? selection_.ending : selection_.going_on).push_back(chosen);
}

}  // namespace attend
