#include "attend/metrics/metric.h"

namespace attend {

Metric make_metric(const BleuOptions& options) {
  return {[options](const Lines& hypotheses, const References& references) {
            return bleu_statistics(hypotheses, references, options);
          },
          [options](const SegmentStatistics& statistics) {
            return bleu_from_statistics(statistics, options);
          },
          bleu_scorer(options)};
}

Metric make_metric(const ChrfOptions& options) {
  return {[options](const Lines& hypotheses, const References& references) {
            return chrf_statistics(hypotheses, references, options);
          },
          [options](const SegmentStatistics& statistics) {
            return chrf_from_statistics(statistics, options);
          },
          chrf_scorer(options)};
}

Metric make_metric(const TerOptions& options) {
  return {[options](const Lines& hypotheses, const References& references) {
            return ter_statistics(hypotheses, references, options);
          },
          [options](const SegmentStatistics& statistics) {
            return ter_from_statistics(statistics, options);
          },
          ter_scorer()};
}

}  // namespace attend
