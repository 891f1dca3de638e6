#pragma once

#include <cstdint>
#include <string_view>

namespace attend {

/// What a finished output's log P is divided by before outputs of different lengths are compared.
/// |Y| counts the end of sentence.
enum class LengthPenalty {
  kGnmt,     ///< ((5 + |Y|) / 6)^α (Wu et al. 2016, equation 14)
  kAverage,  ///< |Y|
  kNone,     ///< 1
};
std::string_view name_of(LengthPenalty kind);  ///< "gnmt", "average", "none"

/// When a search has enough.
enum class Stopping {
  /// n_best outputs are finished and no active hypothesis would be better if it ended now for
  /// nothing.
  kLikely,
  kCertain,  ///< The same, and none could still be better at any length that it may have.
  /// beam_size outputs are finished, whatever others might become: first come, first served
  /// (Kasai et al. 2022, "A Call for Clarity in Beam Search", §2), as in fairseq.
  kFirst,
};
std::string_view name_of(Stopping rule);  ///< "likely", "certain", "first"

/// Of a sentence, each with its keys and values.
inline constexpr int64_t kMostHypotheses = 1000;

/// How a translation is searched for (Vaswani et al. 2017, §6.1). docs/decoding.md is about each.
struct SearchOptions {
  int64_t beam_size = 4;  ///< 1 is greedy search
  LengthPenalty length_penalty_kind = LengthPenalty::kGnmt;
  double length_penalty = 0.6;  ///< α of kGnmt
  Stopping stopping = Stopping::kLikely;
  int64_t max_extra_length = 50;  ///< the output has at most this many tokens more than the input
  int64_t max_length = 0;         ///< output tokens at most, whatever the input; 0: no such limit
  int64_t min_length = 0;         ///< output tokens before it may end
  int64_t n_best = 1;             ///< translations a sentence, at most beam_size unless sampling
  /// Whether log P of what is found is wanted. Without, greedy search need not sum over the
  /// vocabulary; log_prob is then no more than a number.
  bool scores = true;

  double coverage_penalty = 0;    ///< β of Wu et al. 2016, equation 14
  double repetition_penalty = 1;  ///< θ of Keskar et al. 2019, §4.1, at least 1
  int64_t no_repeat_ngram_size =
      0;  ///< no n tokens in a row occur twice (Paulus et al. 2017); 0: off

  int64_t beam_groups = 1;          ///< G of diverse beam search (Vijayakumar et al. 2016)
  double diversity_strength = 0.5;  ///< its λ

  bool sampling = false;       ///< n_best outputs are drawn from the model's distribution
  double temperature = 1;      ///< log P is divided by it before drawing
  int64_t sampling_top_k = 0;  ///< among the k best tokens alone (Fan et al. 2018); 0: all
  /// Among the fewest best tokens that have this probability together (Holtzman et al. 2020).
  double sampling_top_p = 1;
  uint64_t seed = 1;  ///< of sampling

  /// Source tokens searched at once by one worker, at a beam size of 4; at another beam size as
  /// many as make the same number of hypotheses; 0: as with_batch_tokens() says. It bounds memory;
  /// the answers do not depend on it.
  int64_t batch_tokens = 0;

  /// Of a sentence at once, at most: rows of a step.
  int64_t hypotheses() const { return sampling ? n_best : beam_size; }
  bool needs_log_probs() const {
    return scores || beam_size > 1 || sampling || repetition_penalty > 1;
  }
  /// Throws UsageError naming the option, or the options that contradict each other.
  void validate() const;
};

}  // namespace attend
