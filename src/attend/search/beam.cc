#include "attend/search/beam.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <utility>

#include "attend/base/error.h"
#include "attend/search/hypothesis_score.h"

namespace attend {
namespace {

constexpr int64_t kWidest = 128;  // tokens that are ranked, before all of them are the quicker way
constexpr int64_t kNodesAtFirst = 512;

/// The limits on an output's length: of what was asked for what can be had.
struct Lengths {
  int64_t least, most;
};

Lengths output_lengths(const SearchRequest& request, const RequiredPhrases& required,
                       int64_t longest, const SearchOptions& options) {
  int64_t most = std::ssize(request.source) + options.max_extra_length;
  if (options.max_length > 0) most = std::min(most, options.max_length);
  const int64_t must_hold = std::ssize(request.constraints.prefix) + required.total();
  if (must_hold > longest) {
    fail("a prefix and required words of {} tokens; the model puts out {} at most", must_hold,
         longest);
  }
  most = std::min(std::max({most, options.min_length, must_hold}), longest);
  return {.least = std::min(options.min_length, most), .most = most};
}

void check_required(const RequiredPhrases& required, const SearchTokens& tokens) {
  for (const std::vector<int32_t>& phrase : required.phrases()) {
    for (const int32_t token : phrase) {
      if (token == tokens.bos || token == tokens.eos ||
          std::ranges::find(tokens.suppressed, token) != tokens.suppressed.end()) {
        fail(
            "a required word or phrase has a token, id {}, that is never put out: it is "
            "suppressed, or the model's vocabulary cannot spell the phrase",
            token);
      }
    }
  }
}

}  // namespace

Beam::Beam(const SearchRequest& request, int64_t longest, const SearchTokens& tokens,
           const SearchOptions& options)
    : tokens_(&tokens),
      options_(options),
      prefix_(request.constraints.prefix),
      required_(request.constraints.required),
      group_size_(options.hypotheses() / options.beam_groups),
      finished_each_(options.sampling ? options.n_best : std::min(options.n_best, group_size_)),
      rules_(tokens, options),
      active_(static_cast<std::size_t>(options.hypotheses())),
      next_(active_.size()),
      groups_(static_cast<std::size_t>(options.beam_groups)) {
  if (options.sampling) sampler_.emplace(request.source, options);
  check_required(required_, tokens);
  if (!required_.empty() && (options.sampling || options.beam_groups > 1)) {
    fail_usage(
        "required words are for beam search with one group; leave out sampling and "
        "beam_groups for sentences that have some");
  }
  const Lengths lengths = output_lengths(request, required_, longest, options);
  max_length_ = lengths.most;
  rules_.set_min_length(lengths.least);
  active_.front().token = tokens.bos;
  width_ = find_width();
  nodes_.reserve(
      static_cast<std::size_t>(std::min((max_length_ + 1) * options.hypotheses(), kNodesAtFirst)));
}

int64_t Beam::find_width() const {
  // Of one hypothesis no more than the beam go on; an end of sentence after those does not count.
  const int64_t searched = required_.empty() ? group_size_ + 1 : 2 * group_size_;
  const int64_t wanted = options_.sampling ? options_.sampling_top_k : searched;
  const int64_t penalized = groups_.size() > 1 ? options_.beam_size : 0;
  return wanted + penalized + rules_.most_affected(length_);
}

bool Beam::needs_all_scores() const {
  if (in_prefix()) return true;
  if (must_end()) return false;
  if (options_.sampling && options_.sampling_top_k == 0) return true;
  if (width_ > kWidest) return true;
  const uint64_t all = required_.all_met();
  return std::ranges::any_of(active(),
                             [all](const ActiveHypothesis& each) { return each.met != all; });
}

std::span<ActiveHypothesis> Beam::next_turn(bool in_two) {
  turn_ = reach_ - looked_at_;
  if (in_two && looked_at_ == 0 && ranks_at_once()) {
    const double near = active_.front().rank_score - std::log(2 * static_cast<double>(group_size_));
    while (active_[turn_ - 1].rank_score < near) --turn_;
  }
  return turn();
}

/// Whether candidates are all that a step needs to know of a hypothesis.
bool Beam::ranks_at_once() const {
  return !sampler_ && required_.empty() && groups_.size() == 1 && !needs_attention() &&
         !in_prefix() && !must_end();
}

/// How many of the active may have a candidate among the step's best: a hypothesis whose own score
/// is below those of enough candidates has none.
std::size_t Beam::find_reach() {
  rank_scores_.clear();
  for (const Candidate& each : candidates_) {
    if (each.token != tokens_->eos) rank_scores_.push_back(each.rank_score);
  }
  if (std::ssize(rank_scores_) < group_size_) return count_;
  const auto last = rank_scores_.begin() + group_size_ - 1;
  std::ranges::nth_element(rank_scores_, last, std::ranges::greater());
  std::size_t reach = looked_at_;
  while (reach < count_ && active_[reach].rank_score > *last) ++reach;  // equal ones rank by parent
  return reach;
}

void Beam::advance(std::span<const StepScores> rows) {
  if (looked_at_ == 0) {
    candidates_.clear();
    eos_log_probs_.clear();
  }
  for (const StepScores& row : rows) {
    if (!std::isfinite(row.eos_log_prob)) {
      // One that would be left out in two turns must not count in one either.
      if (ranks_at_once() && find_reach() == looked_at_) break;
      fail("the model's scores are not numbers; its weights are damaged, or training diverged");
    }
    eos_log_probs_.push_back(row.eos_log_prob);
    if (ranks_at_once()) offer(row, looked_at_);
    ++looked_at_;
  }
  if (ranks_at_once()) reach_ = find_reach();
  turn_ = reach_ - looked_at_;
  if (turn_ > 0) return;
  take_step(rows);
  looked_at_ = 0;
  reach_ = turn_ = count_;
}

void Beam::take_step(std::span<const StepScores> rows) {
  next_count_ = 0;
  if (needs_attention()) add_coverage(rows);
  const bool forced = in_prefix();
  if (forced) {
    force_prefix(rows.front());
  } else {
    for (Group& group : groups_) advance(group, rows);
  }
  active_.swap(next_);
  count_ = next_count_;
  ++length_;
  width_ = find_width();
  if (forced) return;  // all groups still share the one hypothesis
  drop_hopeless();
  done_ = count_ == 0;
}

void Beam::add_coverage(std::span<const StepScores> rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<float>& coverage = active_[i].coverage;
    coverage.resize(rows[i].attention.size());
    std::ranges::transform(coverage, rows[i].attention, coverage.begin(), std::plus<>());
  }
}

void Beam::force_prefix(const StepScores& row) {
  const int32_t token = prefix_[static_cast<std::size_t>(length_)];
  const float log_prob = log_prob_of(row, token);
  extend({.rank_score = active_.front().rank_score + static_cast<double>(log_prob),
          .token = token,
          .token_log_prob = log_prob,
          .weighted_token_log_prob = static_cast<double>(log_prob)});
}

void Beam::advance(Group& group, std::span<const StepScores> rows) {
  const std::size_t first_child = next_count_;
  selection_.clear();
  select(group, rows);
  for (const Candidate& each : selection_.ending) finish(group, each);
  for (const Candidate& each : selection_.going_on) extend(each);
  if (next_count_ == first_child && group.finished.empty()) {
    // The rules leave nothing, but something must come out.
    selection_.clear();
    end_all(group);
    for (const Candidate& each : selection_.ending) finish(group, each);
  }
  group.first = first_child;
  group.end = next_count_;
}

void Beam::select(const Group& group, std::span<const StepScores> rows) {
  if (must_end()) return end_all(group);
  if (sampler_) {
    // All samples start from one hypothesis.
    const bool parted = length_ > std::ssize(prefix_);
    const auto samples = parted ? count_ : active_.size();
    for (std::size_t i = 0; i < samples; ++i) {
      const std::size_t rank = parted ? i : 0;
      draw(rows[rank], rank, parted ? active_[rank].sample : static_cast<int32_t>(i));
    }
    return;
  }
  if (ranks_at_once()) return select_best(candidates_, group_size_, tokens_->eos, selection_);
  candidates_.clear();
  banked_.clear();
  for (std::size_t rank = group.first; rank < group.end; ++rank) {
    if (required_.empty()) {
      offer(rows[rank], rank);
    } else {
      offer_required(rows[rank], rank);
    }
  }
  if (required_.empty()) {
    select_best(candidates_, group_size_, tokens_->eos, selection_);
  } else {
    allocate_beam(banked_, required_.total(), group_size_, tokens_->eos, selection_);
  }
}

void Beam::end_all(const Group& group) {
  for (std::size_t rank = group.first; rank < group.end; ++rank) {
    selection_.ending.push_back(candidate(rank, tokens_->eos, eos_log_probs_[rank]));
  }
  std::ranges::sort(selection_.ending, better);
}

void Beam::extend(const Candidate& candidate) {
  const ActiveHypothesis& parent = active_[static_cast<std::size_t>(candidate.parent)];
  ActiveHypothesis& child = next_[next_count_++];
  child.token = candidate.token;
  child.parent = candidate.parent;
  child.node = static_cast<int32_t>(nodes_.size());
  child.sample = candidate.sample;
  child.log_prob = parent.log_prob + static_cast<double>(candidate.token_log_prob);
  child.weighted_log_prob = parent.weighted_log_prob + candidate.weighted_token_log_prob;
  child.rank_score = candidate.rank_score;
  child.slots.assign(parent.slots.begin(), parent.slots.end());
  child.coverage.assign(parent.coverage.begin(), parent.coverage.end());
  if (!required_.empty()) {
    history(static_cast<std::size_t>(candidate.parent));
    history_.back() = candidate.token;
    child.met = required_.met_after(parent.met, history_);
  }
  nodes_.push_back({parent.node, candidate.token, candidate.token_log_prob});
}

void Beam::finish(Group& group, const Candidate& candidate) {
  if (has_its_first(group)) return;
  ++group.ended;
  const ActiveHypothesis& parent = active_[static_cast<std::size_t>(candidate.parent)];
  const int64_t length = length_ + 1;  // the end of sentence counts
  double score = length_penalized(parent.weighted_log_prob + candidate.weighted_token_log_prob,
                                  length, options_);
  if (needs_attention()) score += coverage_penalty(parent.coverage, options_.coverage_penalty);
  std::vector<Hypothesis>& finished = group.finished;
  const auto place = std::upper_bound(finished.begin(), finished.end(), score,
                                      [](double a, const Hypothesis& b) { return a > b.score; });
  if (place == finished.end() && std::ssize(finished) == finished_each_) return;
  Hypothesis hypothesis{.tokens = std::vector<int32_t>(static_cast<std::size_t>(length_)),
                        .token_log_probs = std::vector<float>(static_cast<std::size_t>(length)),
                        .log_prob = parent.log_prob + static_cast<double>(candidate.token_log_prob),
                        .score = score};
  hypothesis.token_log_probs.back() = candidate.token_log_prob;
  int32_t node = parent.node;
  for (std::size_t i = hypothesis.tokens.size(); i-- > 0;) {
    const Node& link = nodes_[static_cast<std::size_t>(node)];
    hypothesis.tokens[i] = link.token;
    hypothesis.token_log_probs[i] = link.log_prob;
    node = link.parent;
  }
  finished.insert(place, std::move(hypothesis));
  if (std::ssize(finished) > finished_each_) finished.pop_back();
}

bool Beam::has_its_first(const Group& group) const {
  return options_.stopping == Stopping::kFirst && group.ended == group_size_;
}

bool Beam::can_win(const Group& group, const ActiveHypothesis& hypothesis) const {
  if (options_.stopping == Stopping::kFirst) return !has_its_first(group);
  if (std::ssize(group.finished) < finished_each_) return true;
  if (group_size_ == 1) return false;
  // log P only falls, weighted or not; the penalty divides it by no more than at the greatest
  // length; and coverage takes away at least nothing. It seldom falls slower than the penalty
  // grows.
  const int64_t length = options_.stopping == Stopping::kCertain ? max_length_ : length_;
  const double bound = length_penalized(hypothesis.weighted_log_prob, length + 1, options_);
  return bound > group.finished.back().score;
}

/// Drops hypotheses that will not win, from the last on: they would only take the places of those
/// that may. A group goes on as long as one after it does, whose penalties depend on it.
void Beam::drop_hopeless() {
  for (auto group = groups_.rbegin(); group != groups_.rend(); ++group) {
    while (group->end > group->first && !can_win(*group, active_[group->end - 1])) --group->end;
    count_ = group->end;
    if (group->end > group->first) return;
  }
}

std::vector<Hypothesis> Beam::take_best() {
  if (groups_.size() == 1) return std::move(groups_.front().finished);
  std::vector<Hypothesis> best;
  const auto drop_known = [&best](Group& group) {
    const auto known = [&best](const Hypothesis& each) {
      return std::ranges::find(best, each.tokens, &Hypothesis::tokens) != best.end();
    };
    std::erase_if(group.finished, known);
    return group.finished.empty();
  };
  for (;;) {
    // A round: each group gives its best one that is not there yet.
    std::erase_if(groups_, drop_known);
    if (groups_.empty()) break;
    std::ranges::stable_sort(groups_, std::ranges::greater(),
                             [](const Group& group) { return group.finished.front().score; });
    for (Group& group : groups_) {
      if (drop_known(group)) continue;
      if (std::ssize(best) < options_.n_best) best.push_back(group.finished.front());
    }
    if (std::ssize(best) == options_.n_best) break;
  }
  std::ranges::stable_sort(best, std::ranges::greater(), &Hypothesis::score);
  return best;
}

}  // namespace attend
