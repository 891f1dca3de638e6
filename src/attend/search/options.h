#pragma once

#include <cstdint>

namespace attend {

/// How a translation is searched for (Vaswani et al. 2017, §6.1).
struct SearchOptions {
  int64_t beam_size = 4;          ///< 1 is greedy search
  double length_penalty = 0.6;    ///< α of Wu et al. 2016: log P / ((5 + |Y|) / 6)^α
  int64_t max_extra_length = 50;  ///< the output has at most this many tokens more than the input
  int64_t n_best = 1;             ///< translations a sentence, at most beam_size
  /// Source tokens searched at once by one worker, at a beam size of 4; at another beam size as
  /// many as make the same number of hypotheses. It bounds memory; the answers do not depend on it.
  int64_t batch_tokens = 2048;
  /// Of a sentence at once, at most: rows of a step.
  int64_t hypotheses() const { return beam_size; }
  void validate() const;  ///< throws UsageError naming the option
};

}  // namespace attend
