#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "attend/search/candidate.h"
#include "attend/search/hypothesis.h"
#include "attend/search/options.h"
#include "attend/search/required_phrases.h"
#include "attend/search/sampling.h"
#include "attend/search/token_rules.h"

namespace attend {

/// What a step offers one active hypothesis.
struct StepScores {
  std::span<const int32_t> tokens;   ///< its best tokens, best first; empty where `all` is given
  std::span<const float> log_probs;  ///< their log P(token | tokens before)
  std::span<const float> all;        ///< log P of every token of the vocabulary, or empty
  float eos_log_prob = 0;            ///< of the end of sentence
  /// Over the source tokens, mean over the heads of the last layer; empty unless asked for.
  std::span<const float> attention;
};

/// A hypothesis that goes on.
struct ActiveHypothesis {
  int32_t token = 0;           ///< the last, which is the decoder's next input
  int32_t parent = 0;          ///< its parent's rank among the active ones of the step before
  std::vector<int32_t> slots;  ///< the engine's, of the tokens that have been inputs; inherited

  // The beam's own.
  int32_t node = -1;    ///< of its last token in the beam's tree; -1: no token yet
  int32_t sample = 0;   ///< which of a sentence's samples it is
  double log_prob = 0;  ///< of its tokens, the model's
  double weighted_log_prob =
      0;                        ///< the same after TokenRules: of what ranks it when it is finished
  double rank_score = 0;        ///< the same less penalties for likeness to other groups
  uint64_t met = 0;             ///< see RequiredPhrases
  std::vector<float> coverage;  ///< sums of StepScores::attention; empty unless asked for
};

/// One sentence's search. It knows no model: it is told what each step offers, see beam_search.
///
/// There is one group of hypotheses, or beam_groups of them that search one after the other in each
/// step: a token costs a hypothesis diversity_strength for each hypothesis of the groups before it
/// that has taken the token in this step (Vijayakumar et al. 2016, Algorithm 1, with Hamming
/// diversity). As in the authors' code the cost stays with the hypothesis while it is active;
/// finished ones are ranked without it.
class Beam {
 public:
  /// longest: output tokens that the model can make, end of sentence not counted. `tokens` must
  /// outlive this. Throws Error where the request's constraints cannot be met.
  Beam(const SearchRequest& request, int64_t longest, const SearchTokens& tokens,
       const SearchOptions& options);

  /// Those that the next step is to extend; those of a group side by side, best first.
  std::span<ActiveHypothesis> active() { return {active_.data(), count_}; }
  std::span<const ActiveHypothesis> active() const { return {active_.data(), count_}; }
  /// Output tokens of every active hypothesis, which is the position of the next input.
  int64_t length() const { return length_; }
  /// Whether the next step must give StepScores::all; else the best `width()` tokens do.
  bool needs_all_scores() const;
  /// Whether steps must give StepScores::attention.
  bool needs_attention() const { return options_.coverage_penalty > 0; }
  /// How many best tokens a step must give: what goes on and what may be refused. More change
  /// nothing; where the vocabulary has fewer, all.
  int64_t width() const { return width_; }
  /// Those of the active that are to be run next. A step has one turn, for all of them, or may have
  /// `in_two`: those whose score says less than a 2 · beam_size-th of the best one's P wait, since
  /// what the others are offered is often so good that nothing of theirs could go on. Then they are
  /// not run. What comes out is the same.
  std::span<ActiveHypothesis> next_turn(bool in_two);
  std::span<ActiveHypothesis> turn() { return active().subspan(looked_at_, turn_); }
  std::span<const ActiveHypothesis> turn() const { return active().subspan(looked_at_, turn_); }
  /// Takes what the turn offers, one a hypothesis, in order; with the last turn, the step. Throws
  /// Error where a hypothesis that counts is offered scores that are not numbers.
  void advance(std::span<const StepScores> rows);
  bool done() const { return done_; }
  /// The n_best best, best first. Of several groups: in rounds, in which each group gives the best
  /// that is not there yet; fewer where they found the same.
  std::vector<Hypothesis> take_best();

 private:
  /// A token of a hypothesis, linked to the one before it.
  struct Node {
    int32_t parent = -1;
    int32_t token = 0;
    float log_prob = 0;
  };
  struct Group {
    std::size_t first = 0, end = 1;    ///< of its active ones; before they part all groups have one
    int64_t ended = 0;                 ///< all that have finished
    std::vector<Hypothesis> finished;  ///< the best of them, best first
  };

  bool ranks_at_once() const;
  std::size_t find_reach();
  void take_step(std::span<const StepScores> rows);
  bool in_prefix() const { return length_ < std::ssize(prefix_); }
  bool must_end() const { return length_ == max_length_; }
  int64_t find_width() const;

  // What hypotheses are offered: beam_candidates.cc.
  std::span<const int32_t> history(std::size_t rank);
  std::span<const int32_t> ranked_tokens(const StepScores& row);
  static float log_prob_of(const StepScores& row, int32_t token);
  Candidate candidate(std::size_t rank, int32_t token, float log_prob) const;
  double diversity_penalty(int32_t token) const;
  void look_at(std::size_t rank);
  void offer(const StepScores& row, std::size_t rank);
  void offer_required(const StepScores& row, std::size_t rank);
  void add_banked(std::size_t rank, const Candidate& candidate);
  void draw(const StepScores& row, std::size_t rank, int32_t sample);

  // What becomes of it: beam.cc.
  void add_coverage(std::span<const StepScores> rows);
  void force_prefix(const StepScores& row);
  void advance(Group& group, std::span<const StepScores> rows);
  void select(const Group& group, std::span<const StepScores> rows);
  void end_all(const Group& group);
  void extend(const Candidate& candidate);
  void finish(Group& group, const Candidate& candidate);
  bool has_its_first(const Group& group) const;
  bool can_win(const Group& group, const ActiveHypothesis& hypothesis) const;
  void drop_hopeless();

  const SearchTokens* tokens_;
  SearchOptions options_;
  std::vector<int32_t> prefix_;
  RequiredPhrases required_;
  int64_t max_length_ = 0;
  int64_t group_size_;
  int64_t finished_each_;  ///< the most that a group keeps of its finished ones
  TokenRules rules_;
  std::optional<Sampler> sampler_;

  int64_t length_ = 0;
  int64_t width_ = 0;
  bool done_ = false;
  std::size_t count_ = 1;
  std::vector<ActiveHypothesis> active_;  ///< the first count_; the others keep their memory
  std::vector<ActiveHypothesis> next_;    ///< likewise
  std::size_t next_count_ = 0;
  std::vector<Group> groups_;
  std::vector<Node> nodes_;

  std::size_t looked_at_ = 0;  ///< of the active, in the step's turns so far
  std::size_t reach_ = 1;      ///< of the active, those to be looked at in this step
  std::size_t turn_ = 1;       ///< of these, how many in this turn

  // Of one step; members keep their memory.
  std::vector<float> eos_log_probs_;  ///< of those looked at
  std::vector<double> rank_scores_;
  std::vector<Candidate> candidates_;
  std::vector<BankedCandidate> banked_;
  Selection selection_;
  std::vector<int32_t> history_;
  std::vector<int32_t> ranked_;
  std::vector<int32_t> required_next_;
  std::vector<double> weighted_;
};

}  // namespace attend
