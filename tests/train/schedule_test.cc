#include "attend/train/schedule.h"

#include <gtest/gtest.h>

namespace attend {
namespace {

TrainOptions with(Schedule schedule, double rate, int64_t warmup) {
  TrainOptions options;
  options.schedule = schedule;
  options.learning_rate = rate;
  options.warmup = warmup;
  options.model.d_model = 512;
  return options;
}

TEST(Schedule, PaperHasItsPeakAtTheEndOfWarmUp) {
  // Vaswani et al. 2017, §5.3, with d_model 512 and 4000 warm-up steps.
  const TrainOptions options = with(Schedule::kPaper, 1, 4000);
  EXPECT_NEAR(learning_rate(options, 1, 0), 1.746928e-7, 1e-12);
  EXPECT_NEAR(learning_rate(options, 2000, 0), 3.493856e-4, 1e-9);
  EXPECT_NEAR(learning_rate(options, 4000, 0), 6.987712e-4, 1e-9);
  EXPECT_NEAR(learning_rate(options, 16000, 0), 3.493856e-4, 1e-9);
  EXPECT_NEAR(learning_rate(options, 100000, 0), 1.397542e-4, 1e-9);
  EXPECT_LT(learning_rate(options, 4001, 0), learning_rate(options, 4000, 0));
  EXPECT_NEAR(learning_rate(with(Schedule::kPaper, 2, 4000), 4000, 0), 2 * 6.987712e-4, 1e-9);
}

TEST(Schedule, InverseSquareRoot) {
  const TrainOptions options = with(Schedule::kInverseSqrt, 1e-3, 100);
  EXPECT_DOUBLE_EQ(learning_rate(options, 1, 0), 1e-5);
  EXPECT_DOUBLE_EQ(learning_rate(options, 50, 0), 5e-4);
  EXPECT_DOUBLE_EQ(learning_rate(options, 100, 0), 1e-3);
  EXPECT_DOUBLE_EQ(learning_rate(options, 400, 0), 5e-4);
  EXPECT_DOUBLE_EQ(learning_rate(options, 10000, 0.9), 1e-4);
}

TEST(Schedule, LinearEndsAtZero) {
  const TrainOptions options = with(Schedule::kLinear, 1e-3, 10);
  EXPECT_DOUBLE_EQ(learning_rate(options, 5, 0), 5e-4);
  EXPECT_DOUBLE_EQ(learning_rate(options, 5, 0.5), 2.5e-4);
  EXPECT_DOUBLE_EQ(learning_rate(options, 100, 0.25), 7.5e-4);
  EXPECT_DOUBLE_EQ(learning_rate(options, 100, 1), 0);
  EXPECT_DOUBLE_EQ(learning_rate(options, 100, 1.5), 0);
}

TEST(Schedule, ConstantAfterWarmUpAndWithoutIt) {
  const TrainOptions options = with(Schedule::kConstant, 1e-3, 10);
  EXPECT_DOUBLE_EQ(learning_rate(options, 4, 0), 4e-4);
  EXPECT_DOUBLE_EQ(learning_rate(options, 10, 0), 1e-3);
  EXPECT_DOUBLE_EQ(learning_rate(options, 1000000, 0.99), 1e-3);
  EXPECT_DOUBLE_EQ(learning_rate(with(Schedule::kConstant, 1e-3, 0), 1, 0), 1e-3);
}

TEST(Limits, ProgressIsInTheUnitOfTheLimit) {
  const TrainingAmount done{.epochs = 2.5, .updates = 300, .tokens = 5000, .seconds = 90};
  EXPECT_DOUBLE_EQ(progress_of(done, {.epochs = 10.0}), 0.25);
  EXPECT_DOUBLE_EQ(progress_of(done, {.updates = 1200}), 0.25);
  EXPECT_DOUBLE_EQ(progress_of(done, {.tokens = 10000}), 0.5);
  EXPECT_DOUBLE_EQ(progress_of(done, {.seconds = 60.0}), 1.5);
  EXPECT_DOUBLE_EQ(progress_of(done, {}), 0);
}

TEST(Limits, AreReachedExactly) {
  EXPECT_FALSE(reached({.updates = 299}, {.updates = 300}));
  EXPECT_TRUE(reached({.updates = 300}, {.updates = 300}));
  EXPECT_TRUE(reached({.tokens = 5001}, {.tokens = 5000}));
  EXPECT_FALSE(reached({.seconds = 59.9}, {.seconds = 60.0}));
  EXPECT_FALSE(reached({.epochs = 1e9, .updates = 1, .tokens = 1, .seconds = 1e9}, {}));
  // An epoch cut into thirds is whole again in spite of rounding.
  double third = 0;
  for (int i = 0; i < 3; ++i) third += 1.0 / 3;
  EXPECT_TRUE(reached({.epochs = third - 1e-12}, {.epochs = 1.0}));
  EXPECT_FALSE(reached({.epochs = 0.9999}, {.epochs = 1.0}));
}

TEST(Contract17, LimitsCountIn64Bits) {
  constexpr int64_t kMany = int64_t{3} << 32;
  EXPECT_FALSE(reached({.tokens = kMany - 1}, {.tokens = kMany}));
  EXPECT_TRUE(reached({.tokens = kMany}, {.tokens = kMany}));
  EXPECT_FALSE(reached({.updates = kMany - 1}, {.updates = kMany}));
  EXPECT_DOUBLE_EQ(progress_of({.tokens = kMany / 2}, {.tokens = kMany}), 0.5);
}

TEST(Limits, WhatRepeatsIsDueAfterItsAmount) {
  EXPECT_FALSE(due({.updates = 1999}, {.updates = 1000}, {.updates = 1000}));
  EXPECT_TRUE(due({.updates = 2000}, {.updates = 1000}, {.updates = 1000}));
  EXPECT_TRUE(due({.epochs = 1.5}, {.epochs = 0.5}, {.epochs = 1.0}));
  EXPECT_FALSE(due({.epochs = 1.4}, {.epochs = 0.5}, {.epochs = 1.0}));
  EXPECT_TRUE(due({.seconds = 61}, {.seconds = 31}, {.seconds = 30.0}));
  EXPECT_FALSE(due({.updates = 100000}, {}, {}));
}

}  // namespace
}  // namespace attend
