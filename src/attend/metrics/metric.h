#pragma once

#include <functional>

#include "attend/metrics/bleu.h"
#include "attend/metrics/chrf.h"
#include "attend/metrics/score.h"
#include "attend/metrics/ter.h"

namespace attend {

/// A metric with its options, for callers that treat all metrics alike. The score of one segment is
/// `scorer(statistics.row(segment))`.
struct Metric {
  std::function<SegmentStatistics(const Lines& hypotheses, const References& references)>
      statistics;
  std::function<Score(const SegmentStatistics&)> score;
  Scorer scorer;
};

/// Throws UsageError for options that the metric does not take.
Metric make_metric(const BleuOptions& options);
Metric make_metric(const ChrfOptions& options);
Metric make_metric(const TerOptions& options);

}  // namespace attend
