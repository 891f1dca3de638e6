#pragma once

#include <cstdint>
#include <vector>

#include "attend/search/beam_search.h"

namespace attend {

/// A hypothesis that goes on.
struct ActiveHypothesis {
  std::vector<int32_t> tokens;  ///< begin of sentence first; the last is the decoder's next input
  std::vector<int32_t> slots;   ///< in the caches, of the tokens that have been inputs
  double log_prob = 0;
};

/// A way for an active hypothesis to go on.
struct Candidate {
  double log_prob = 0;  ///< of the whole
  int32_t parent = 0;   ///< its rank among the active
  int32_t token = 0;
};

/// One sentence's search. It knows no model: it is told what each step offers, see beam_search.
class Beam {
 public:
  /// max_length: output tokens at most, end of sentence not counted.
  Beam(int64_t max_length, const SearchTokens& tokens, const SearchOptions& options);

  /// At most beam_size, best first.
  const std::vector<ActiveHypothesis>& active() const { return active_; }
  std::vector<ActiveHypothesis>& active() { return active_; }
  /// The active hypotheses may only end now.
  bool must_end() const { return active_length() == max_length_; }
  /// Takes the step. The candidates, in any order, are the 2 · beam_size best of all at least, or
  /// all there are; where the hypotheses must end, an end of sentence for each. They are used up.
  void advance(std::vector<Candidate>& candidates);
  bool done() const { return done_; }
  /// The n_best best, best first.
  std::vector<Hypothesis> take_best();

 private:
  int64_t active_length() const { return static_cast<int64_t>(active_.front().tokens.size()) - 1; }
  void finish(const Candidate& candidate);
  bool can_still_win() const;

  int64_t max_length_;
  int64_t beam_size_;
  int64_t n_best_;
  double length_penalty_;
  int32_t eos_;
  std::vector<ActiveHypothesis> active_;
  std::vector<Hypothesis> finished_;  ///< the n_best best, best first
  bool done_ = false;
};

}  // namespace attend
