#include "attend/train/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "attend/base/error.h"
#include "tests/support/numbers.h"
#include "tests/train/engine_support.h"

namespace attend::testing {
namespace {

TEST(Engine, TheBitsDoNotDependOnTheNumberOfWorkers) {
  for (const TrainOptions& options : {small_options(), regularized_options()}) {
    for (const DType compute : compute_dtypes()) {
      Training one(options, compute, 1);
      const auto before = one.bits();
      std::vector<UpdateStats> stats;
      for (int64_t step = 1; step <= 6; ++step) stats.push_back(one.update(step));
      ASSERT_NE(one.bits()[0], before[0]);
      for (const int64_t workers : {2, 3}) {
        Training several(options, compute, workers);
        for (int64_t step = 1; step <= 6; ++step) {
          const UpdateStats found = several.update(step);
          const UpdateStats& expected = stats[static_cast<std::size_t>(step - 1)];
          EXPECT_EQ(found.loss.loss, expected.loss.loss) << workers << " workers, step " << step;
          EXPECT_EQ(found.loss.divergence, expected.loss.divergence);
          EXPECT_EQ(found.gradient_norm, expected.gradient_norm);
        }
        EXPECT_EQ(several.bits(), one.bits()) << workers << " workers, " << name_of(compute);
      }
    }
  }
}

TEST(Engine, AccumulatedBatchesAreOneBatchOfAllTheirLanes) {
  Training apart(small_options(), DType::kFloat32, 2),
      together(small_options(), DType::kFloat32, 2);
  const Batch first = random_batch(3, 9, 1), second = random_batch(2, 8, 2);
  Batch both = first;
  both.lanes.insert(both.lanes.end(), second.lanes.begin(), second.lanes.end());
  const UpdateStats stats = apart.engine->update({first, second}, 1, 1e-2);
  together.engine->update({both}, 1, 1e-2);
  EXPECT_EQ(apart.bits(), together.bits());
  EXPECT_EQ(stats.loss.tokens, first.target_tokens + second.target_tokens);
}

TEST(Engine, SeedAndStepDrawTheDropout) {
  TrainOptions other_seed = small_options();
  other_seed.seed = 2;
  Training a(small_options(), DType::kFloat32, 1), b(other_seed, DType::kFloat32, 1),
      c(small_options(), DType::kFloat32, 1);
  const std::vector<Batch> batches = {random_batch(4, 12, 1)};
  const double loss = a.engine->update(batches, 1, 1e-2).loss.loss;
  EXPECT_NE(b.engine->update(batches, 1, 1e-2).loss.loss, loss);
  EXPECT_NE(c.engine->update(batches, 2, 1e-2).loss.loss, loss);
}

TEST(Engine, ClippingBoundsTheGradientThatEntersTheMoments) {
  const auto norm_of = [](const Tensor& flat) {
    double squares = 0;
    for (const float x : flat.to_vector()) squares += static_cast<double>(x) * x;
    return std::sqrt(squares);
  };
  TrainOptions options = small_options();
  options.clip_norm = 0;
  Training free(options, DType::kFloat32, 2);
  const double norm = free.update(1).gradient_norm;
  EXPECT_NEAR(norm_of(free.engine->first_moment()), (1 - options.adam_beta1) * norm, 1e-5 * norm);
  options.clip_norm = norm / 3;
  Training clipped(options, DType::kFloat32, 2);
  EXPECT_EQ(clipped.update(1).gradient_norm, norm);
  EXPECT_NEAR(norm_of(clipped.engine->first_moment()), (1 - options.adam_beta1) * norm / 3,
              1e-5 * norm);
}

TEST(Engine, DecoupledWeightDecayShrinksAllWeights) {
  TrainOptions options = small_options();
  options.optimizer = OptimizerKind::kAdamW;
  Training plain(options, DType::kFloat32, 2);
  options.weight_decay = 0.5;
  Training decayed(options, DType::kFloat32, 2);
  const std::vector<float> before = plain.model.parameters().flat_master().to_vector();
  plain.update(1, 1e-2);
  decayed.update(1, 1e-2);
  std::vector<float> expected = plain.model.parameters().flat_master().to_vector();
  for (std::size_t i = 0; i < before.size(); ++i) expected[i] -= 1e-2F * 0.5F * before[i];
  EXPECT_LE(relative_error(decayed.model.parameters().flat_master().to_vector(), expected), 1e-6);
  EXPECT_EQ(bits_of(decayed.engine->first_moment()), bits_of(plain.engine->first_moment()))
      << "Adam does not see it";
}

TEST(Engine, AdamsWeightDecayIsPartOfTheGradient) {
  TrainOptions options = small_options();
  options.clip_norm = 0;
  Training plain(options, DType::kFloat32, 2);
  options.weight_decay = 0.5;
  Training decayed(options, DType::kFloat32, 2);
  const std::vector<float> before = plain.model.parameters().flat_master().to_vector();
  plain.update(1);
  decayed.update(1);
  std::vector<float> expected = plain.engine->first_moment().to_vector();
  for (std::size_t i = 0; i < before.size(); ++i) expected[i] += (1 - 0.9F) * 0.5F * before[i];
  EXPECT_LE(relative_error(decayed.engine->first_moment().to_vector(), expected), 1e-6);
}

// What memory is planned by is the most that an update takes.
TEST(Engine, WhatALaneTakesIsMeasuredWithAllLayersAndBothPasses) {
  TrainOptions options = small_options();
  options.model.encoder_layers = options.model.decoder_layers = 4;
  const Batch batch = random_batch(1, 40, 1);
  const auto bytes_with = [&](const Regularization& regularization) {
    options.regularization = regularization;
    return Training(options, DType::kFloat32, 1).engine->measure(batch.lanes[0]);
  };
  const int64_t plain = bytes_with({});
  EXPECT_EQ(bytes_with({.layer_drop = 0.9F}), plain);
  EXPECT_NEAR(static_cast<double>(bytes_with({.r_drop = 1})), 2.0 * static_cast<double>(plain),
              0.2 * static_cast<double>(plain));
}

TEST(Engine, TheMovingAverageFollowsItsFormula) {
  Training training(small_options(), DType::kFloat32, 2);
  std::vector<float> expected = training.model.parameters().flat_master().to_vector();
  EXPECT_EQ(training.engine->average().to_vector(), expected) << "it starts from the weights";
  for (int64_t step = 1; step <= 5; ++step) {
    training.update(step);
    const std::vector<float> weights = training.model.parameters().flat_master().to_vector();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] += (1 - 0.9F) * (weights[i] - expected[i]);
    }
  }
  EXPECT_LE(relative_error(training.engine->average().to_vector(), expected), 1e-6);
}

TEST(Engine, ValidatingChangesNothingAndHasNoDropout) {
  for (const DType compute : compute_dtypes()) {
    Training training(small_options(), compute, 2), quiet(small_options(), compute, 1);
    training.update(1);
    quiet.update(1);
    const std::vector<Batch> batches = {random_batch(4, 12, 9), random_batch(2, 5, 10)};
    const auto before = training.bits();
    const LossSums first = training.engine->validate(batches);
    EXPECT_EQ(training.bits(), before);
    EXPECT_EQ(training.engine->validate(batches).nll, first.nll);
    EXPECT_EQ(quiet.engine->validate(batches).nll, first.nll) << "one worker";
    EXPECT_EQ(first.tokens, batches[0].target_tokens + batches[1].target_tokens);
    // And the next update is the one that it would have been.
    training.update(2);
    Training straight(small_options(), compute, 1);
    straight.update(1);
    straight.update(2);
    EXPECT_EQ(training.bits(), straight.bits());
  }
}

/// `poison` in one weight makes the loss, or the gradient alone, not finite.
void expect_skipped(const std::string& weight, float poison, DType compute) {
  SCOPED_TRACE(fmt::format("{} in {}, {}", poison, weight, name_of(compute)));
  Training training(small_options(), compute, 2), straight(small_options(), compute, 1);
  training.update(1);
  straight.update(1);
  ParameterSet& parameters = training.model.parameters();
  const Tensor& poisoned = parameters.find(weight).master;
  const std::vector<float> healthy = poisoned.to_vector();
  std::vector<float> values = healthy;
  values[3] = poison;
  poisoned.assign(values);
  parameters.refresh_compute();
  const auto before = training.bits();

  const UpdateStats stats = training.update(2);
  EXPECT_TRUE(stats.skipped);
  EXPECT_FALSE(std::isfinite(stats.loss.loss) && std::isfinite(stats.gradient_norm));
  EXPECT_EQ(training.bits(), before);

  // Nothing of the bad gradient is left for the next update.
  poisoned.assign(healthy);
  parameters.refresh_compute();
  EXPECT_FALSE(training.update(2).skipped);
  straight.update(2);
  EXPECT_EQ(training.bits(), straight.bits());
}

TEST(Contract15Engine, WhatIsNotFiniteNeverEntersWeightsAndMoments) {
  for (const DType compute : compute_dtypes()) {
    for (const char* weight : {"embedding", "encoder.layers.0.feed_forward.inner.weight"}) {
      expect_skipped(weight, std::numeric_limits<float>::quiet_NaN(), compute);
      expect_skipped(weight, std::numeric_limits<float>::infinity(), compute);
    }
  }
}

TEST(Contract15Engine, AGradientThatIsNotFiniteIsSkippedThoughTheLossIsFinite) {
  Training training(small_options(), DType::kFloat32, 2);
  // As if one of the lanes had left it.
  const Tensor& gradient = training.model.parameters().flat_gradient();
  std::vector<float> left(static_cast<std::size_t>(gradient.count()), 0.0F);
  left[5] = std::numeric_limits<float>::infinity();
  gradient.assign(left);
  const auto before = training.bits();
  const UpdateStats stats = training.update(1);
  EXPECT_TRUE(stats.skipped);
  EXPECT_TRUE(std::isfinite(stats.loss.loss));
  EXPECT_EQ(training.bits(), before);
  EXPECT_FALSE(training.update(1).skipped);
}

TEST(Engine, AFailingLaneIsReportedByItsCause) {
  for (const int64_t workers : {1, 3}) {
    Training training(small_options(), DType::kFloat32, workers);
    for (int attempt = 0; attempt < 20; ++attempt) {
      Batch batch = random_batch(4, 12, 1);
      batch.lanes[static_cast<std::size_t>(attempt % 4)].source.tokens[0] = 999;
      try {
        training.engine->update({batch}, 1, 1e-2);
        FAIL() << "expected an Error";
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("999"), std::string::npos) << error.what();
      }
    }
  }
}

/// The share of target tokens that a model gets right after so many updates.
double accuracy_after(int64_t updates, bool reverse) {
  TrainOptions options = small_options();
  options.model.d_model = 32;
  options.model.d_ff = 64;
  options.model.heads = 4;
  options.model.dropout = options.model.attention_dropout = options.model.ffn_dropout = 0;
  options.model.norm = NormPlacement::kPre;
  options.clip_norm = 1;
  Training training(options, DType::kFloat32, 1);
  for (int64_t step = 1; step <= updates; ++step) {
    const double rate = 5e-3 * std::min(1.0, static_cast<double>(step) / 50) *
                        std::min(1.0, static_cast<double>(updates - step) / 200);
    training.engine->update({random_batch(2, 32, static_cast<uint64_t>(step), reverse)}, step,
                            rate);
  }
  const LossSums sums = training.engine->validate({random_batch(2, 100, 1 << 20, reverse)});
  return static_cast<double>(sums.correct) / static_cast<double>(sums.tokens);
}

TEST(Engine, LearnsToCopy) { EXPECT_EQ(accuracy_after(700, false), 1.0); }
TEST(Engine, LearnsToReverse) { EXPECT_EQ(accuracy_after(900, true), 1.0); }

}  // namespace
}  // namespace attend::testing
