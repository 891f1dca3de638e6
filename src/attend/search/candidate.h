#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace attend {

/// A way for an active hypothesis to go on.
struct Candidate {
  double rank_score = 0;  ///< of the whole; what a step ranks by
  int32_t parent = 0;     ///< its rank among the active
  int32_t token = 0;
  float token_log_prob = 0;            ///< the model's
  double weighted_token_log_prob = 0;  ///< the same after TokenRules
  int32_t sample = 0;                  ///< which of a sentence's samples it goes on
};

/// A total order, so that equal scores fall out the same way everywhere.
bool better(const Candidate& a, const Candidate& b);

/// What a step makes of its candidates.
struct Selection {
  std::vector<Candidate> going_on;  ///< best first
  std::vector<Candidate> ending;
  void clear() {
    going_on.clear();
    ending.clear();
  }
};

/// A step of beam search: of the 2 · beam_size best candidates, ends of sentence among the first
/// beam_size end, and the first beam_size others go on; but greedy search, with a beam_size of
/// 1, is over where it ends. Reorders the candidates.
void select_best(std::vector<Candidate>& candidates, int64_t beam_size, int32_t eos,
                 Selection& selection);

/// The ids of the `count` best of `log_probs`, best first; of equal ones the lowest.
void best_tokens(std::span<const float> log_probs, std::size_t count, std::vector<int32_t>& tokens);

}  // namespace attend
