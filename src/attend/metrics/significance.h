#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attend/metrics/score.h"

namespace attend {

/// How to resample. Methods and random numbers are those of sacreBLEU 2 with SACREBLEU_SEED set to
/// `seed`, so that p-values are equal. sacreBLEU adds resamples up in float32 and attend in
/// float64: means and intervals agree to some six digits.
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
  std::optional<Confidence> confidence;
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

struct RandomizationOptions {
  int64_t trials = 10000;
  uint64_t seed = 12345;
};

/// Paired two-sided approximate randomization (Riezler and Maxwell 2005, "On some pitfalls in
/// automatic evaluation and significance testing for MT"): each trial gives every segment's two
/// translations to two pseudo-systems at random, and the p-value is how often those differ by more
/// than the systems do. There are no confidence intervals. Throws as paired_bootstrap does.
std::vector<PairedResult> paired_randomization(std::span<const SegmentStatistics> systems,
                                               const Scorer& scorer,
                                               const RandomizationOptions& options = {});

/// `signature` with what was resampled in sacreBLEU's place, behind the number of references:
/// "nrefs:1|bs:1000|seed:12345|case:mixed|...". `test` is "bs" or "ar".
std::string signature_with(std::string_view signature, std::string_view test, int64_t samples,
                           uint64_t seed);

}  // namespace attend
