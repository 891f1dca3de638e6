#include "attend/report/series.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace attend {
namespace {

using Json = nlohmann::ordered_json;

std::vector<RunHistory::Training> training(int64_t count) {
  std::vector<RunHistory::Training> points;
  for (int64_t i = 1; i <= count; ++i) {
    RunHistory::Training& point = points.emplace_back();
    point.progress.done = {.epochs = 0.5, .updates = 10 * i, .tokens = 1000 * i, .seconds = 2.0};
    point.progress.loss = static_cast<double>(i);
    point.progress.perplexity = std::exp(static_cast<double>(i));
    point.progress.tokens_per_second = i % 2 == 1 ? 100 : 300;
    point.progress.gradient_norm = 1;
    point.progress.learning_rate = 0.001 * static_cast<double>(i);
  }
  return points;
}

TEST(Series, AShortRunIsDrawnAsItIs) {
  const Json series = training_series(training(3), 3);
  EXPECT_EQ(series["merged"], 1);
  EXPECT_EQ(series["update"], Json::array({10, 20, 30}));
  EXPECT_EQ(series["loss"], Json::array({1.0, 2.0, 3.0}));
}

TEST(Series, ALongOneIsDrawnAsIfItHadLoggedLessOften) {
  const Json series = training_series(training(5), 3);
  EXPECT_EQ(series["points"], 5);
  EXPECT_EQ(series["merged"], 2);
  EXPECT_EQ(series["update"], Json::array({20, 40, 50}));
  EXPECT_EQ(series["loss"], Json::array({1.5, 3.5, 5.0}));
  EXPECT_NEAR(series["perplexity"][0].get<double>(), std::exp(1.5), 1e-4) << "geometric";
  EXPECT_EQ(series["tokens_per_second"][0], 150.0) << "harmonic: as many tokens at either speed";
  EXPECT_EQ(series["learning_rate"], Json::array({0.002, 0.004, 0.005}));
}

TEST(Series, WhatIsNoNumberIsLeftOut) {
  auto points = training(4);
  points[0].progress.loss = std::numeric_limits<double>::quiet_NaN();
  points[2].progress.loss = points[3].progress.loss = std::numeric_limits<double>::infinity();
  const Json series = training_series(points, 2);
  EXPECT_EQ(series["loss"], Json::array({2.0, nullptr}));
}

TEST(Series, OfManyValidationsTheBestAndTheLastAreKept) {
  std::vector<RunHistory::Validation> validations(20);
  for (std::size_t i = 0; i < validations.size(); ++i) {
    validations[i].done.updates = static_cast<int64_t>(i);
    validations[i].scores.bleu = static_cast<double>(i);
  }
  validations[3].best = validations[13].best = true;
  const Json series = validation_series(validations, 4);
  EXPECT_EQ(series["update"], Json::array({0, 5, 10, 13, 15, 19}));
  EXPECT_EQ(series["best"], 3) << "the last one that was the best";
  EXPECT_EQ(series["bleu"][3], 13.0);
  EXPECT_EQ(series["chrf"][3], nullptr);
}

TEST(Series, NumbersHaveSixDigits) {
  EXPECT_EQ(rounded(1.0 / 3).dump(), "0.333333");
  EXPECT_EQ(rounded(12345678).dump(), "12345700.0");
  EXPECT_TRUE(rounded(std::numeric_limits<double>::quiet_NaN()).is_null());
}

}  // namespace
}  // namespace attend
