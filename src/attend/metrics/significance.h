#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "attend/metrics/score.h"

namespace attend {

/// How to resample. The method is sacreBLEU 2's; the random numbers are attend's own
/// (RandomGenerator), so that means, intervals and p-values agree with sacreBLEU's within sampling
/// error and not to the last digit.
struct BootstrapOptions {
  int64_t resamples = 1000;
  uint64_t seed = 12345;
};

/// Draws as many segments as there are, with replacement, `resamples` times, and takes the mean of
/// the scores and their 95% interval. Throws UsageError where resamples is below 1.
Confidence bootstrap_confidence(const SegmentStatistics& statistics, const Scorer& scorer,
                                const BootstrapOptions& options = {});

/// Puts the interval into the score, and "bs" and "seed" into its signature.
void add_confidence(Score& score, const SegmentStatistics& statistics, const Scorer& scorer,
                    const BootstrapOptions& options = {});

/// How one system compares with the baseline.
struct PairedResult {
  double value = 0;  ///< the system's score
  Confidence confidence;
  /// How probable a difference at least as large as that to the baseline would be, were the
  /// systems equally good. The baseline has none.
  std::optional<double> p_value;
};

/// Paired bootstrap resampling (Koehn 2004, "Statistical significance tests for machine translation
/// evaluation"). The differences of the resamples are centred before they are compared with the
/// observed one. The first system is the baseline;
/// all are scored on the same resamples. Throws UsageError where there are no systems, where they
/// have different numbers of segments, or where resamples is below 1.
std::vector<PairedResult> paired_bootstrap(std::span<const SegmentStatistics> systems,
                                           const Scorer& scorer,
                                           const BootstrapOptions& options = {});

}  // namespace attend
