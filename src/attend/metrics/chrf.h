#pragma once

#include <cstdint>
#include <string>

#include "attend/metrics/score.h"

namespace attend {

/// chrF (Popović 2015, "chrF: character n-gram F-score for automatic MT evaluation") and chrF++
/// (Popović 2017, "chrF++: words helping character n-grams"), with the definitions and the printed
/// form of sacreBLEU 2. The defaults are chrF2; chrF++ has word_order 2.
struct ChrfOptions {
  int64_t char_order = 6;  ///< longest character n-grams, at most 100
  int64_t word_order = 0;  ///< longest word n-grams, at most 100
  int64_t beta = 2;        ///< how many times recall counts more than precision
  bool lowercase = false;
  bool whitespace = false;  ///< count white space as characters
  /// Average F-scores over all orders as the first chrF++ programs do, instead of averaging
  /// precision and recall over the orders that both sides are long enough for.
  bool eps_smoothing = false;
};

struct ChrfScore : Score {
  int64_t char_order = 0;
  int64_t word_order = 0;
  int64_t beta = 0;
};

/// The score of a text; where there are several references, each line counts against the one that
/// it scores best with. Throws as check_lines does, and UsageError for orders that are negative,
/// above 100 or both 0, and for a beta below 1.
ChrfScore corpus_chrf(const Lines& hypotheses, const References& references,
                      const ChrfOptions& options = {});

/// The score of one line; `references` are the translations of this line.
ChrfScore sentence_chrf(const std::string& hypothesis, const Lines& references,
                        const ChrfOptions& options = {});

/// corpus_chrf in two steps: rows of [n-grams of the hypothesis, of the reference, matches] for
/// each character order and then each word order.
SegmentStatistics chrf_statistics(const Lines& hypotheses, const References& references,
                                  const ChrfOptions& options = {});
ChrfScore chrf_from_statistics(const SegmentStatistics& statistics,
                               const ChrfOptions& options = {});
/// For bootstrap resampling.
Scorer chrf_scorer(const ChrfOptions& options = {});

}  // namespace attend
