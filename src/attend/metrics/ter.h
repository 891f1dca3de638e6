#pragma once

#include <cstdint>
#include <string>

#include "attend/metrics/score.h"

namespace attend {

/// Translation edit rate (Snover et al. 2006, "A study of translation edit rate with targeted human
/// annotation"): insertions, deletions, substitutions and shifts of words, per word of the
/// reference, in percent. Finding the fewest is hard, so programs search greedily within limits;
/// this one follows those of sacreBLEU 2, which follow Tercom's.
struct TerOptions {
  bool case_sensitive = false;
  bool normalized = false;  ///< undo XML escapes and separate punctuation from words
  bool no_punct = false;    ///< remove . , ? : ; ! " ( )
  /// What the two do to Western text, do to Asian text, too: ideographs become words of their own,
  /// and Asian punctuation is separated or removed. Without them it does nothing.
  bool asian_support = false;
};

struct TerScore : Score {
  int64_t edits = 0;
  double reference_length = 0;  ///< words; the average where there are several references
};

/// The score of a text; where there are several references, each line's edits are those of the
/// closest, and its length is their average. Throws as check_lines does.
TerScore corpus_ter(const Lines& hypotheses, const References& references,
                    const TerOptions& options = {});

/// The score of one line; `references` are the translations of this line.
TerScore sentence_ter(const std::string& hypothesis, const Lines& references,
                      const TerOptions& options = {});

/// corpus_ter in two steps: rows of [edits, reference length].
SegmentStatistics ter_statistics(const Lines& hypotheses, const References& references,
                                 const TerOptions& options = {});
TerScore ter_from_statistics(const SegmentStatistics& statistics, const TerOptions& options = {});
/// For bootstrap resampling.
Scorer ter_scorer();

}  // namespace attend
