#include "attend/metrics/significance.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "attend/base/error.h"
#include "attend/base/random.h"

namespace attend {

namespace {

/// `resamples` times as many draws of a segment as there are segments. Equal options give equal
/// draws, whichever the systems.
class Resamples {
 public:
  Resamples(size_t segments, const BootstrapOptions& options)
      : segments_(segments), count_(options.resamples), seed_(options.seed) {
    if (count_ < 1) fail_usage("{} bootstrap resamples: expected 1 or more", count_);
    if (segments_ == 0) fail("there are no segments to resample");
  }

  /// The score of every resample.
  std::vector<double> score(const SegmentStatistics& statistics, const Scorer& scorer) const {
    RandomGenerator random(seed_);
    std::vector<double> scores, sums(statistics.columns());
    for (int64_t i = 0; i < count_; ++i) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (size_t drawn = 0; drawn < segments_; ++drawn) {
        const std::span<const double> row = statistics.row(random.uniform_index(segments_));
        for (size_t c = 0; c < row.size(); ++c) sums[c] += row[c];
      }
      scores.push_back(scorer(sums));
    }
    return scores;
  }

 private:
  size_t segments_;
  int64_t count_;
  uint64_t seed_;
};

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Confidence confidence_of(std::vector<double> scores, const BootstrapOptions& options) {
  std::sort(scores.begin(), scores.end());
  const size_t lower = scores.size() / 40;  // 2.5% on either side
  const size_t upper = scores.size() - lower - 1;
  return {mean_of(scores), 0.5 * (scores[upper] - scores[lower]), options.resamples, options.seed};
}

/// How often a resample's difference is as far from the mean difference as the observed difference
/// is from none. One is added to both counts, so that the answer is never 0.
double p_value(const std::vector<double>& baseline, const std::vector<double>& system,
               double observed) {
  std::vector<double> differences;
  for (size_t i = 0; i < baseline.size(); ++i) {
    differences.push_back(std::abs(system[i] - baseline[i]));
  }
  const double mean = mean_of(differences);
  const auto larger = std::count_if(differences.begin(), differences.end(), [&](double difference) {
    return difference - mean > observed;
  });
  return static_cast<double>(larger + 1) / static_cast<double>(differences.size() + 1);
}

}  // namespace

Confidence bootstrap_confidence(const SegmentStatistics& statistics, const Scorer& scorer,
                                const BootstrapOptions& options) {
  return confidence_of(Resamples(statistics.size(), options).score(statistics, scorer), options);
}

void add_confidence(Score& score, const SegmentStatistics& statistics, const Scorer& scorer,
                    const BootstrapOptions& options) {
  score.confidence = bootstrap_confidence(statistics, scorer, options);
  const size_t after_references = score.signature.find('|');
  score.signature.insert(after_references,
                         fmt::format("|bs:{}|seed:{}", options.resamples, options.seed));
}

std::vector<PairedResult> paired_bootstrap(std::span<const SegmentStatistics> systems,
                                           const Scorer& scorer, const BootstrapOptions& options) {
  if (systems.empty()) fail_usage("there is no system to compare");
  const Resamples resamples(systems[0].size(), options);
  std::vector<PairedResult> results;
  std::vector<double> baseline;
  for (size_t i = 0; i < systems.size(); ++i) {
    if (systems[i].size() != systems[0].size()) {
      fail_usage("system {} has {} lines and the baseline has {}", i + 1, systems[i].size(),
                 systems[0].size());
    }
    std::vector<double> scores = resamples.score(systems[i], scorer);
    PairedResult result{scorer(systems[i].sum()), confidence_of(scores, options), std::nullopt};
    if (i == 0) {
      baseline = std::move(scores);
    } else {
      result.p_value = p_value(baseline, scores, std::abs(result.value - results[0].value));
    }
    results.push_back(result);
  }
  return results;
}

}  // namespace attend
