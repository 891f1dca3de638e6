#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attend/metrics/score.h"
#include "attend/metrics/tokenizers.h"

namespace attend {

/// BLEU (Papineni et al. 2002, "BLEU: a method for automatic evaluation of machine translation"),
/// with the definitions and the printed form of sacreBLEU 2 (Post 2018, "A call for clarity in
/// reporting BLEU scores").

/// What to do about an n-gram order without a match (Chen and Cherry 2014, "A systematic comparison
/// of smoothing techniques for sentence-level BLEU"). A score without any match is 0 with all four.
enum class BleuSmoothing {
  kNone,   ///< the score is 0
  kFloor,  ///< `smooth_value` (0.1) matches instead of none
  kAddK,   ///< `smooth_value` (1) is added to matches and n-grams of the orders above 1
  kExp,    ///< 1/2, 1/4, ... matches for the first, second, ... order without one
};

std::string_view name_of(BleuSmoothing smoothing);  ///< "none", "floor", "add-k" or "exp"
/// Throws UsageError listing the names that there are.
BleuSmoothing parse_bleu_smoothing(std::string_view name);

struct BleuOptions {
  BleuTokenizer tokenizer = BleuTokenizer::k13a;
  std::string tokenizer_model = {};  ///< see load_bleu_tokenizer()
  bool lowercase = false;
  BleuSmoothing smoothing = BleuSmoothing::kExp;
  /// Of kFloor and kAddK; unset means 0.1 and 1. Setting it with another smoothing is a UsageError.
  std::optional<double> smooth_value = std::nullopt;
  /// Leave out the orders for which the text is too short. Unset means: not for a corpus, but for
  /// a sentence.
  std::optional<bool> effective_order = std::nullopt;
  int64_t max_ngram_order = 4;  ///< from 1 to 100; another than 4 is in the signature
};

struct BleuScore : Score {
  // By order, from 1 to max_ngram_order:
  std::vector<int64_t> counts;     ///< matching n-grams, before smoothing
  std::vector<int64_t> totals;     ///< n-grams of the hypotheses, before smoothing
  std::vector<double> precisions;  ///< in percent, after smoothing
  double brevity_penalty = 0;
  double ratio = 0;  ///< hypothesis_length / reference_length; 0 where that is 0
  int64_t hypothesis_length = 0;
  int64_t reference_length = 0;  ///< of the references closest in length
};

/// The score of a text. Throws as check_lines and load_bleu_tokenizer do, and UsageError for a bad
/// `smooth_value` or `max_ngram_order`.
BleuScore corpus_bleu(const Lines& hypotheses, const References& references,
                      const BleuOptions& options = {});

/// The score of one line; `references` are the translations of this line.
BleuScore sentence_bleu(const std::string& hypothesis, const Lines& references,
                        const BleuOptions& options = {});

/// corpus_bleu in two steps: rows of [hypothesis length, reference length, counts, totals].
SegmentStatistics bleu_statistics(const Lines& hypotheses, const References& references,
                                  const BleuOptions& options = {});
BleuScore bleu_from_statistics(const SegmentStatistics& statistics,
                               const BleuOptions& options = {});
/// For bootstrap resampling.
Scorer bleu_scorer(const BleuOptions& options = {});

}  // namespace attend
