#include "attend/metrics/significance.h"

#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "attend/metrics/bleu.h"
#include "attend/metrics/metric.h"
#include "tests/metrics/fixture.h"

namespace attend {
namespace {

using nlohmann::json;

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

struct Corpus {
  std::vector<Lines> systems;
  References references;
};

Corpus corpus(const json& fixture, size_t references) {
  Corpus corpus{fixture["corpus"]["systems"].get<std::vector<Lines>>(),
                fixture["corpus"]["references"].get<References>()};
  corpus.references.resize(references);
  return corpus;
}

Metric metric_of(const json& expected) {
  if (expected["metric"] == "bleu") return make_metric(bleu_options(expected["options"]));
  if (expected["metric"] == "chrf") return make_metric(chrf_options(expected["options"]));
  return make_metric(ter_options(expected["options"]));
}

std::vector<PairedResult> results_of(const json& expected,
                                     const std::vector<SegmentStatistics>& systems,
                                     const Scorer& scorer) {
  const auto samples = expected["samples"].get<int64_t>();
  const auto seed = expected["seed"].get<uint64_t>();
  if (expected["test"] == "bs") return paired_bootstrap(systems, scorer, {samples, seed});
  return paired_randomization(systems, scorer, {samples, seed});
}

// sacreBLEU adds resamples up in float32, so that means have some six digits in common.
void expect_same(const PairedResult& result, const json& expected) {
  EXPECT_NEAR(result.value, expected["score"].get<double>(), 1e-9);
  EXPECT_EQ(result.p_value.has_value(), !expected["p_value"].is_null());
  if (result.p_value) {
    EXPECT_DOUBLE_EQ(*result.p_value, expected["p_value"].get<double>());
  }
  EXPECT_EQ(result.confidence.has_value(), !expected["mean"].is_null());
  if (!result.confidence) return;
  EXPECT_NEAR(result.confidence->mean, expected["mean"].get<double>(), 1e-4);
  EXPECT_NEAR(result.confidence->half_width, expected["ci"].get<double>(), 1e-4);
}

TEST(Contract25, PairedTestsAreSacrebleus) {
  const json fixture = read_fixture("significance_fixture.json");
  for (const json& expected : fixture["paired"]) {
    SCOPED_TRACE(fmt::format("{} {} {}, seed {}, {} references", expected["metric"].dump(),
                             expected["test"].dump(), expected["samples"].dump(),
                             expected["seed"].dump(), expected["references"].dump()));
    const Metric metric = metric_of(expected);
    const Corpus of = corpus(fixture, expected["references"].get<size_t>());
    std::vector<SegmentStatistics> systems;
    for (const Lines& system : of.systems) {
      systems.push_back(metric.statistics(system, of.references));
    }
    const std::vector<PairedResult> results = results_of(expected, systems, metric.scorer);
    ASSERT_EQ(results.size(), expected["results"].size());
    for (size_t i = 0; i < results.size(); ++i) expect_same(results[i], expected["results"][i]);
    EXPECT_EQ(without_version(signature_with(
                  metric.score(systems[0]).signature, expected["test"].get<std::string>(),
                  expected["samples"].get<int64_t>(), expected["seed"].get<uint64_t>())),
              expected["signature"].get<std::string>());
  }
}

TEST(Contract25, ConfidenceIsSacrebleus) {
  const json fixture = read_fixture("significance_fixture.json");
  const Corpus of = corpus(fixture, 1);
  const Metric metrics[] = {make_metric(BleuOptions{}), make_metric(ChrfOptions{}),
                            make_metric(ChrfOptions{.word_order = 2}), make_metric(TerOptions{})};
  for (size_t i = 0; i < std::size(metrics); ++i) {
    const auto statistics = metrics[i].statistics(of.systems[0], of.references);
    Score score = metrics[i].score(statistics);
    add_confidence(score, statistics, metrics[i].scorer);
    score.signature = without_version(score.signature);
    EXPECT_EQ(score.format(3), fixture["confidence"][i]["line"].get<std::string>());
  }
}

TEST(Significance, RandomizationTellsClearDifferencesFromNone) {
  const std::vector<SegmentStatistics> systems = {coins(100, 300), coins(300, 100),
                                                  coins(101, 299, false)};
  const std::vector<PairedResult> results = paired_randomization(systems, mean, {.trials = 999});
  EXPECT_FALSE(results[0].p_value.has_value());
  EXPECT_DOUBLE_EQ(results[1].p_value.value(), 1.0 / 1000);
  EXPECT_GT(results[2].p_value.value(), 0.1);
  EXPECT_FALSE(results[1].confidence.has_value());
  EXPECT_THROW(paired_randomization(systems, mean, {.trials = 0}), UsageError);
  EXPECT_THROW(paired_randomization({}, mean), UsageError);
}

TEST(Significance, RefusesWhatCannotBeCompared) {
  EXPECT_THROW(paired_bootstrap({}, mean), UsageError);
  const std::vector<SegmentStatistics> systems = {coins(3, 2), coins(3, 3)};
  EXPECT_THROW(paired_bootstrap(systems, mean), UsageError);
  EXPECT_THROW(bootstrap_confidence(coins(1, 1), mean, {.resamples = 0}), UsageError);
}

}  // namespace
}  // namespace attend
