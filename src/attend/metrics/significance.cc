#include "attend/metrics/significance.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "attend/base/error.h"
#include "attend/metrics/pcg64.h"

namespace attend {

namespace {

void add_to(std::vector<double>& sums, std::span<const double> row) {
  for (size_t c = 0; c < row.size(); ++c) sums[c] += row[c];
}

/// Throws UsageError where what is to be drawn cannot be.
void check(int64_t samples, std::string_view what, size_t segments) {
  if (samples < 1) fail_usage("{} {}: expected 1 or more", samples, what);
  if (segments == 0) fail("there are no segments to resample");
  if (segments > UINT32_MAX) fail("{} segments are too many to resample", segments);
}

/// The scores of texts drawn from this one's segments. Equal options give equal draws, whichever
/// the system.
std::vector<double> resampled_scores(const SegmentStatistics& statistics, const Scorer& scorer,
                                     const BootstrapOptions& options) {
  const size_t segments = statistics.size();
  check(options.resamples, "bootstrap resamples", segments);
  Pcg64 random(options.seed);
  std::vector<double> scores, sums(statistics.columns());
  for (int64_t i = 0; i < options.resamples; ++i) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (size_t drawn = 0; drawn < segments; ++drawn) {
      add_to(sums, statistics.row(random.uniform_index(static_cast<uint32_t>(segments))));
    }
    scores.push_back(scorer(sums));
  }
  return scores;
}

/// How far the scores of two texts lie apart that share out each segment of two systems by a coin,
/// for every trial.
std::vector<double> shuffled_differences(const SegmentStatistics& baseline,
                                         const SegmentStatistics& system, const Scorer& scorer,
                                         const RandomizationOptions& options) {
  Pcg64 random(options.seed);
  Pcg64Bits coins(random);
  std::vector<double> differences, first(system.columns()), second(system.columns());
  for (int64_t i = 0; i < options.trials; ++i) {
    std::fill(first.begin(), first.end(), 0.0);
    std::fill(second.begin(), second.end(), 0.0);
    for (size_t segment = 0; segment < system.size(); ++segment) {
      const bool stays = coins.next();
      add_to(first, (stays ? baseline : system).row(segment));
      add_to(second, (stays ? system : baseline).row(segment));
    }
    differences.push_back(std::abs(scorer(first) - scorer(second)));
  }
  return differences;
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Confidence confidence_of(std::vector<double> scores, const BootstrapOptions& options) {
  std::sort(scores.begin(), scores.end());
  const size_t lower = scores.size() / 40;  // 2.5% on either side
  const size_t upper = scores.size() - lower - 1;
  return {mean_of(scores), 0.5 * (scores[upper] - scores[lower]), options.resamples, options.seed};
}

/// The share of the numbers that are greater than the observed one. One is added to both counts, so
/// that the answer is never 0.
double share_above(const std::vector<double>& numbers, double observed) {
  const auto larger = std::count_if(numbers.begin(), numbers.end(),
                                    [&](double number) { return number > observed; });
  return static_cast<double>(larger + 1) / static_cast<double>(numbers.size() + 1);
}

/// How often a resample's difference is as far from the mean difference as the observed difference
/// is from none.
double bootstrap_p_value(const std::vector<double>& baseline, const std::vector<double>& system,
                         double observed) {
  std::vector<double> differences;
  for (size_t i = 0; i < baseline.size(); ++i) {
    differences.push_back(std::abs(system[i] - baseline[i]));
  }
  const double mean = mean_of(differences);
  for (double& difference : differences) difference -= mean;
  return share_above(differences, observed);
}

void check_systems(std::span<const SegmentStatistics> systems) {
  if (systems.empty()) fail_usage("there is no system to compare");
  for (size_t i = 1; i < systems.size(); ++i) {
    if (systems[i].size() == systems[0].size()) continue;
    fail_usage("system {} has {} lines and the baseline has {}", i + 1, systems[i].size(),
               systems[0].size());
  }
}

}  // namespace

Confidence bootstrap_confidence(const SegmentStatistics& statistics, const Scorer& scorer,
                                const BootstrapOptions& options) {
  return confidence_of(resampled_scores(statistics, scorer, options), options);
}

void add_confidence(Score& score, const SegmentStatistics& statistics, const Scorer& scorer,
                    const BootstrapOptions& options) {
  score.confidence = bootstrap_confidence(statistics, scorer, options);
  score.signature = signature_with(score.signature, "bs", options.resamples, options.seed);
}

std::vector<PairedResult> paired_bootstrap(std::span<const SegmentStatistics> systems,
                                           const Scorer& scorer, const BootstrapOptions& options) {
  check_systems(systems);
  std::vector<PairedResult> results;
  std::vector<double> baseline;
  for (const SegmentStatistics& system : systems) {
    std::vector<double> scores = resampled_scores(system, scorer, options);
    PairedResult result{scorer(system.sum()), confidence_of(scores, options), std::nullopt};
    if (results.empty()) {
      baseline = std::move(scores);
    } else {
      const double observed = std::abs(result.value - results[0].value);
      result.p_value = bootstrap_p_value(baseline, scores, observed);
    }
    results.push_back(result);
  }
  return results;
}

std::vector<PairedResult> paired_randomization(std::span<const SegmentStatistics> systems,
                                               const Scorer& scorer,
                                               const RandomizationOptions& options) {
  check_systems(systems);
  check(options.trials, "trials", systems[0].size());
  std::vector<PairedResult> results;
  for (const SegmentStatistics& system : systems) {
    PairedResult result{scorer(system.sum()), std::nullopt, std::nullopt};
    if (!results.empty()) {
      result.p_value = share_above(shuffled_differences(systems[0], system, scorer, options),
                                   std::abs(result.value - results[0].value));
    }
    results.push_back(result);
  }
  return results;
}

std::string signature_with(std::string_view signature, std::string_view test, int64_t samples,
                           uint64_t seed) {
  std::string with(signature);
  with.insert(std::min(with.find('|'), with.size()),
              fmt::format("|{}:{}|seed:{}", test, samples, seed));
  return with;
}

}  // namespace attend
