#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attend/search/hypothesis.h"
#include "attend/search/options.h"

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
  int32_t node = -1;           ///< of its last token in the beam's tree; -1: no token yet
  double log_prob = 0;         ///< of its tokens
  std::vector<int32_t> slots;  ///< the engine's, of the tokens that have been inputs; inherited
};

/// One sentence's search. It knows no model: it is told what each step offers, see beam_search.
class Beam {
 public:
  /// longest: output tokens that the model can make, end of sentence not counted. `tokens` must
  /// outlive this.
  Beam(const SearchRequest& request, int64_t longest, const SearchTokens& tokens,
       const SearchOptions& options);

  /// Those that the next step is to extend, best first.
  std::span<ActiveHypothesis> active() { return {active_.data(), count_}; }
  std::span<const ActiveHypothesis> active() const { return {active_.data(), count_}; }
  /// Output tokens of every active hypothesis, which is the position of the next input.
  int64_t length() const { return length_; }
  /// Whether the next step must give StepScores::all; else the best `width()` tokens do.
  bool needs_all_scores() const { return false; }
  /// Whether steps must give StepScores::attention.
  bool needs_attention() const { return false; }
  /// How many best tokens a step must give: what goes on and what may be refused. More are welcome;
  /// where the vocabulary has fewer, all.
  int64_t width() const;
  /// Takes the step: one a hypothesis, in order.
  void advance(std::span<const StepScores> rows);
  bool done() const { return done_; }
  /// The n_best best, best first.
  std::vector<Hypothesis> take_best();

 private:
  /// A token of a hypothesis, linked to the one before it.
  struct Node {
    int32_t parent = -1;
    int32_t token = 0;
    float log_prob = 0;
  };
  /// A way for an active hypothesis to go on.
  struct Candidate {
    double log_prob = 0;  ///< of the whole
    int32_t parent = 0;   ///< its rank among the active
    int32_t token = 0;
    float token_log_prob = 0;
  };
  static bool better(const Candidate& a, const Candidate& b);

  bool must_end() const { return length_ == max_length_; }
  bool refuses(int32_t token) const;
  void offer(const StepScores& row, int32_t rank);
  void extend(const Candidate& candidate);
  void finish(const Candidate& candidate);
  bool can_still_win() const;

  const SearchTokens* tokens_;
  int64_t max_length_;
  int64_t beam_size_;
  int64_t n_best_;
  double length_penalty_;
  int64_t length_ = 0;
  std::size_t count_ = 1;
  std::vector<ActiveHypothesis> active_;  ///< the first count_; the others keep their memory
  std::vector<ActiveHypothesis> next_;    ///< likewise
  std::size_t next_count_ = 0;
  std::vector<Candidate> candidates_;
  std::vector<Node> nodes_;
  std::vector<Hypothesis> finished_;  ///< the n_best best, best first
  bool done_ = false;
};

}  // namespace attend
