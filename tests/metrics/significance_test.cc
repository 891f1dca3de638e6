#include "attend/metrics/significance.h"

#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "attend/metrics/bleu.h"

namespace attend {
namespace {

/// Each segment is right (100) or wrong (0); the score is the mean.
SegmentStatistics coins(int right, int wrong, bool right_first = true) {
  SegmentStatistics statistics(2);
  const double one[] = {100, 1}, none[] = {0, 1};
  for (int i = 0; i < right + wrong; ++i) {
    statistics.add((right_first ? i < right : i >= wrong) ? one : none);
  }
  return statistics;
}

double mean(std::span<const double> sums) { return sums[0] / sums[1]; }

TEST(Significance, IntervalIsTheBinomialOne) {
  const Confidence confidence = bootstrap_confidence(coins(200, 200), mean, {.resamples = 4000});
  EXPECT_NEAR(confidence.mean, 50, 0.2);
  EXPECT_NEAR(confidence.half_width, 1.96 * 2.5, 0.35);  // sqrt(0.5 * 0.5 / 400) is 2.5%
  EXPECT_EQ(confidence.resamples, 4000);
}

TEST(Significance, SameSeedSameNumbers) {
  const SegmentStatistics statistics = coins(30, 20);
  const double first = bootstrap_confidence(statistics, mean).mean;
  EXPECT_EQ(bootstrap_confidence(statistics, mean).mean, first);
  EXPECT_NE(bootstrap_confidence(statistics, mean, {.seed = 1}).mean, first);
}

TEST(Significance, TellsClearDifferencesFromNone) {
  // The third is hardly better than the baseline, and right elsewhere.
  const std::vector<SegmentStatistics> systems = {coins(100, 300), coins(300, 100),
                                                  coins(101, 299, false)};
  const std::vector<PairedResult> results = paired_bootstrap(systems, mean);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_FALSE(results[0].p_value.has_value());
  EXPECT_EQ(results[0].value, 25);
  EXPECT_EQ(results[1].value, 75);
  EXPECT_DOUBLE_EQ(results[1].p_value.value(), 1.0 / 1001);
  EXPECT_GT(results[2].p_value.value(), 0.1);
}

TEST(Significance, ASystemDoesNotDifferFromItself) {
  const std::vector<SegmentStatistics> systems = {coins(30, 20), coins(30, 20)};
  // No resample differs either, and a zero difference is not attributed to chance.
  EXPECT_DOUBLE_EQ(paired_bootstrap(systems, mean)[1].p_value.value(), 1.0 / 1001);
}

TEST(Significance, ScoreAndSignatureSaySo) {
  const Lines hypotheses = {"a b c d e", "f g h i j", "a b c x e f"};
  const SegmentStatistics statistics =
      bleu_statistics(hypotheses, {{"a b c d e", "f g h i k", "a b c d e f"}});
  BleuScore score = bleu_from_statistics(statistics);
  const double value = score.value;
  add_confidence(score, statistics, bleu_scorer(), {.resamples = 100, .seed = 7});
  EXPECT_EQ(score.signature,
            "nrefs:1|bs:100|seed:7|case:mixed|eff:no|tok:13a|smooth:exp|version:attend-0.1.0");
  EXPECT_EQ(score.value, value);
  EXPECT_EQ(score.format_value(2),
            fmt::format("{:.2f} (μ = {:.2f} ± {:.2f})", value, score.confidence->mean,
                        score.confidence->half_width));
}

TEST(Significance, RefusesWhatCannotBeCompared) {
  EXPECT_THROW(paired_bootstrap({}, mean), UsageError);
  const std::vector<SegmentStatistics> systems = {coins(3, 2), coins(3, 3)};
  EXPECT_THROW(paired_bootstrap(systems, mean), UsageError);
  EXPECT_THROW(bootstrap_confidence(coins(1, 1), mean, {.resamples = 0}), UsageError);
}

}  // namespace
}  // namespace attend
