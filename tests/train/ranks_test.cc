// Several ranks train together: here they are threads of this process; see mpirun_test.cc.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <thread>

#include "attend/comm/local_communicator.h"
#include "attend/train/bench.h"
#include "attend/train/follower.h"
#include "attend/train/rank_messages.h"
#include "tests/train/engine_support.h"
#include "tests/train/support.h"

namespace attend::testing {
namespace {

/// The ranks other than 0, each a thread that follows.
class Followers {
 public:
  explicit Followers(int ranks) : ranks_(make_local_communicators(ranks)) {
    for (int rank = 1; rank < ranks; ++rank) {
      threads_.emplace_back([this, rank] {
        Communicator& mine = *ranks_[static_cast<std::size_t>(rank)];
        try {
          follow(mine);
        } catch (const Error& error) {
          mine.report_failure(error.what(), 1);
        }
      });
    }
  }
  ~Followers() {
    try {
      end_followers(rank_0());
    } catch (const Error&) {  // they have failed and are gone
    }
  }
  Communicator& rank_0() { return *ranks_[0]; }

 private:
  std::vector<std::unique_ptr<Communicator>> ranks_;
  std::vector<std::jthread> threads_;
};

/// As Training, on several ranks.
class TrainingOnRanks {
 public:
  TrainingOnRanks(const TrainOptions& given, DType compute, int ranks, int64_t workers = 1)
      : options(given), followers(ranks), model(given.model, compute, true) {
    set_up_followers(followers.rank_0(), options, compute, workers);
    engine = std::make_unique<Engine>(model, options, workers, &followers.rank_0());
    model.initialize(7);
    engine->take_weights();
  }
  UpdateStats update(int64_t step, int64_t lanes = 4) {
    return engine->update({random_batch(lanes, 12, static_cast<uint64_t>(step))}, step, 1e-2);
  }
  std::vector<std::vector<uint32_t>> bits() const {
    const OptimizerState state = engine->gather_state();
    return {bits_of(model.parameters().flat_master()), bits_of(state.first_moment),
            bits_of(state.second_moment), bits_of(state.average)};
  }

  TrainOptions options;
  Followers followers;
  Transformer model;
  std::unique_ptr<Engine> engine;
};

/// Adam divides by the size of the gradient. Where that is nothing but rounding (keys' biases), it
/// would blow up the difference that is to be measured; not with an epsilon above it.
TrainOptions without_noise(TrainOptions options) {
  options.adam_epsilon = 1e-4;
  return options;
}

std::vector<float> weights_of(const Transformer& model) {
  return model.parameters().flat_master().to_vector();
}

TEST(Shares, EveryElementHasOneOwnerAndAPlaceInItsShare) {
  for (const int64_t size : {16, 48, 5000, 300000}) {
    for (const int ranks : {1, 2, 3, 4}) {
      int64_t all = 0, begin = 0;
      std::vector<int64_t> shares(static_cast<std::size_t>(ranks));
      for (int rank = 0; rank < ranks; ++rank) {
        const Shares mine(size, rank, ranks);
        const Tensor share = Tensor::zeros({mine.share_size()}, DType::kFloat32);
        for (int64_t piece = rank; piece < mine.pieces(); piece += ranks) {
          ASSERT_TRUE(mine.is_mine(piece));
          const Tensor place = mine.in_share(share, piece);
          for (int64_t i = 0; i < place.count(); ++i) place.data<float>()[i] += 1;
        }
        EXPECT_EQ(share.to_vector(),
                  std::vector<float>(static_cast<std::size_t>(mine.share_size()), 1.0F));
        all += mine.share_size();
      }
      const Shares any(size, 0, ranks);
      for (int64_t piece = 0; piece < any.pieces(); ++piece) {
        EXPECT_EQ(any.begin(piece), begin);
        begin = any.end(piece);
      }
      EXPECT_EQ(all, size);
      EXPECT_EQ(begin, size);
    }
  }
}

TEST(Ranks, LanesAreDealtOutInStretchesOfNearlyEqualCost) {
  const Batch batch = random_batch(9, 45, 3);
  std::vector<const Lane*> lanes;
  for (const Lane& lane : batch.lanes) lanes.push_back(&lane);
  for (const int ranks : {1, 2, 3, 4}) {
    const std::vector<std::size_t> bounds = deal_lanes(lanes, ranks);
    ASSERT_EQ(std::ssize(bounds), ranks + 1);
    EXPECT_EQ(bounds.front(), 0U);
    EXPECT_EQ(bounds.back(), lanes.size());
    for (int rank = 0; rank < ranks; ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      EXPECT_LE(bounds[r + 1] - bounds[r], lanes.size() / static_cast<std::size_t>(ranks) + 1);
    }
  }
  EXPECT_EQ(deal_lanes(std::span(lanes).first(1), 3).back(), 1U);
  EXPECT_EQ(deal_lanes({}, 2), (std::vector<std::size_t>{0, 0, 0}));
}

struct Ranking {
  int ranks;
  int64_t workers, lanes;
};

void expect_what_one_finds(const TrainOptions& options, const Ranking& ranking) {
  const auto& [ranks, workers, lanes] = ranking;
  SCOPED_TRACE(fmt::format("{} ranks, {} workers, {} lanes", ranks, workers, lanes));
  Training alone(options, DType::kFloat32, 1);
  TrainingOnRanks together(options, DType::kFloat32, ranks, workers);
  TrainingOnRanks again(options, DType::kFloat32, ranks, 3 - workers);
  for (int64_t step = 1; step <= 5; ++step) {
    const UpdateStats expected =
        alone.engine->update({random_batch(lanes, 12, static_cast<uint64_t>(step))}, step, 1e-2);
    const UpdateStats found = together.update(step, lanes);
    EXPECT_NEAR(found.loss.loss, expected.loss.loss, 1e-5 * expected.loss.loss);
    EXPECT_NEAR(found.loss.divergence, expected.loss.divergence, 1e-4 * expected.loss.divergence);
    EXPECT_EQ(found.loss.tokens, expected.loss.tokens);
    EXPECT_NEAR(found.gradient_norm, expected.gradient_norm, 1e-5 * expected.gradient_norm);
    const UpdateStats repeated = again.update(step, lanes);
    EXPECT_EQ(repeated.gradient_norm, found.gradient_norm);
    EXPECT_EQ(repeated.loss.loss, found.loss.loss);
  }
  EXPECT_LE(relative_error(weights_of(together.model), weights_of(alone.model)), 1e-5);
  EXPECT_EQ(together.bits(), again.bits());
}

TEST(Ranks, SeveralRanksFindWhatOneFindsAndTheSameBitsEachTime) {
  for (const Ranking& ranking :
       {Ranking{2, 1, 4}, {2, 2, 8}, {3, 1, 7}, {4, 1, 4}, {3, 1, 2}, {4, 2, 1}}) {
    for (const TrainOptions& options : {small_options(), regularized_options()}) {
      expect_what_one_finds(without_noise(options), ranking);
    }
  }
}

TEST(Ranks, BFloat16CopiesFollowTheWeights) {
  for (const DType compute : compute_dtypes()) {
    TrainingOnRanks a(small_options(), compute, 3), b(small_options(), compute, 3);
    for (int64_t step = 1; step <= 3; ++step) {
      a.update(step);
      b.update(step);
    }
    b.model.parameters().refresh_compute();
    EXPECT_EQ(a.model.parameters().flat_compute().defined(), compute != DType::kFloat32);
    if (compute != DType::kFloat32) {
      EXPECT_EQ(a.model.parameters().flat_compute().to_vector(),
                b.model.parameters().flat_compute().to_vector());
    }
    EXPECT_EQ(a.bits(), b.bits());
  }
}

TEST(Ranks, ValidationIsDealtOutAndChangesNothing) {
  const std::vector<Batch> batches = {random_batch(4, 12, 9), random_batch(2, 5, 10)};
  Training alone(small_options(), DType::kFloat32, 1);
  TrainingOnRanks together(small_options(), DType::kFloat32, 3);
  alone.update(1);
  together.update(1);
  const auto before = together.bits();
  const LossSums expected = alone.engine->validate(batches);
  const LossSums found = together.engine->validate(batches);
  EXPECT_NEAR(found.nll, expected.nll, 1e-4 * expected.nll);
  EXPECT_EQ(found.tokens, expected.tokens);
  EXPECT_EQ(together.bits(), before);

  // With the moving average, on all ranks, and back.
  const Tensor average = together.engine->gather_average();
  const Tensor average_alone = alone.engine->gather_average();
  alone.engine->swap_weights(average_alone);
  together.engine->swap_weights(average);
  const LossSums averaged = together.engine->validate(batches);
  EXPECT_NEAR(averaged.nll, alone.engine->validate(batches).nll, 1e-4 * averaged.nll);
  EXPECT_GT(std::abs(averaged.nll - found.nll), 1e-4 * found.nll);
  together.engine->swap_weights(average);
  EXPECT_EQ(together.engine->validate(batches).nll, found.nll);
  EXPECT_EQ(together.bits(), before);

  // Others yet, without a word to the other ranks in between; and the update after it.
  const Tensor other({average.count()}, DType::kFloat32);
  other.assign(weights_of(alone.model));
  together.engine->swap_weights(average);
  EXPECT_EQ(together.engine->validate(batches).nll, averaged.nll);
  together.engine->swap_weights(average);
  together.engine->swap_weights(other);
  EXPECT_NEAR(together.engine->validate(batches).nll, averaged.nll, 1e-4 * averaged.nll);
  together.engine->swap_weights(other);
  TrainingOnRanks straight(small_options(), DType::kFloat32, 3);
  straight.update(1);
  straight.update(2);
  together.update(2);
  EXPECT_EQ(together.bits(), straight.bits());
}

TEST(Ranks, StateMovesBetweenNumbersOfRanks) {
  TrainingOnRanks two(small_options(), DType::kFloat32, 2);
  two.update(1);
  two.update(2);
  const OptimizerState state = two.engine->gather_state();
  for (const int ranks : {2, 4}) {
    TrainingOnRanks other(small_options(), DType::kFloat32, ranks);
    other.model.parameters().flat_master().assign(weights_of(two.model));
    other.engine->restore_state(state);
    EXPECT_EQ(other.bits(), two.bits()) << ranks << " ranks";
  }
  Training alone(small_options(), DType::kFloat32, 1);
  alone.model.parameters().flat_master().assign(weights_of(two.model));
  alone.engine->restore_state(state);
  EXPECT_EQ(alone.bits(), two.bits());
}

TEST(Ranks, OneMachineSharesItsCores) {
  const int64_t alone = resolve_workers(0);
  setenv("OMPI_COMM_WORLD_SIZE", "8", 1);
  setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2", 1);
  EXPECT_LE(resolve_workers(0), std::max<int64_t>(1, (sysconf(_SC_NPROCESSORS_ONLN)) / 2));
  setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "1000000", 1);
  EXPECT_EQ(resolve_workers(0), 1);
  setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "1", 1);
  EXPECT_EQ(resolve_workers(0), alone);
  unsetenv("OMPI_COMM_WORLD_SIZE");
  unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
}

TEST(Ranks, WhatALaneTakesIsMeasuredWithoutTheOthers) {
  TrainingOnRanks training(small_options(), DType::kFloat32, 2),
      straight(small_options(), DType::kFloat32, 2);
  training.update(1);
  straight.update(1);
  EXPECT_GT(training.engine->measure(random_batch(1, 3, 4).lanes[0]), 0);
  training.engine->limit_memory(int64_t{1} << 20);
  EXPECT_GT(training.engine->exchange_bytes(), 8 * training.engine->weights());
  training.update(2);
  straight.update(2);
  EXPECT_EQ(training.bits(), straight.bits());
}

TEST(Contract15Ranks, WhatIsNotFiniteOnOneRankIsSkippedOnAll) {
  TrainingOnRanks training(small_options(), DType::kFloat32, 3);
  TrainingOnRanks straight(small_options(), DType::kFloat32, 3);
  training.update(1);
  straight.update(1);
  // As if a lane of rank 0 had left it, in whoever's share it is.
  const Tensor& gradient = training.model.parameters().flat_gradient();
  for (const std::size_t place : {std::size_t{5}, static_cast<std::size_t>(gradient.count()) - 9}) {
    std::vector<float> left(static_cast<std::size_t>(gradient.count()), 0.0F);
    left[place] = std::numeric_limits<float>::infinity();
    gradient.assign(left);
    const auto before = training.bits();
    const UpdateStats stats = training.update(2);
    EXPECT_TRUE(stats.skipped);
    EXPECT_TRUE(std::isfinite(stats.loss.loss));
    EXPECT_EQ(training.bits(), before);
  }
  EXPECT_FALSE(training.update(2).skipped);
  straight.update(2);
  EXPECT_EQ(training.bits(), straight.bits());
}

/// One lane has a token that the model does not have.
void expect_failure_is_told(std::size_t lane, const std::string& expected) {
  TrainingOnRanks training(small_options(), DType::kFloat32, 3, 2);
  Batch batch = random_batch(6, 12, 1);
  batch.lanes[lane].source.tokens[0] = 999;
  try {
    training.engine->update({batch}, 1, 1e-2);
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("999"), std::string::npos) << error.what();
    EXPECT_TRUE(std::string(error.what()).starts_with(expected)) << error.what();
  }
  EXPECT_TRUE(training.followers.rank_0().busy());
  training.followers.rank_0().report_failure("ends", 1);  // as the command does
}

TEST(Ranks, AFailureOnAnyRankIsReportedByItsCause) {
  for (int attempt = 0; attempt < 5; ++attempt) {
    expect_failure_is_told(5, "rank 2: ");
    expect_failure_is_told(2, "rank 1: ");
    expect_failure_is_told(0, "");
  }
}

TEST(Ranks, WeightsAreChangedBackWhateverHasBecomeOfTheOthers) {
  TrainingOnRanks training(small_options(), DType::kFloat32, 2);
  training.update(1);
  const std::vector<float> trained = weights_of(training.model);
  const Tensor average = training.engine->gather_average();
  training.engine->swap_weights(average);
  training.engine->validate({random_batch(4, 12, 9)});
  training.followers.rank_0().report_failure("ends", 1);
  EXPECT_THROW(training.engine->validate({random_batch(4, 12, 9)}), Error);
  training.engine->swap_weights(average);
  EXPECT_EQ(weights_of(training.model), trained);
}

/// A whole run.
TrainResult train_on(int ranks, const TrainOptions& options, int64_t stop_after = 0) {
  Followers followers(ranks);
  std::atomic<bool> stop = false;
  TrainHooks hooks;
  hooks.ranks = &followers.rank_0();
  hooks.stop = &stop;
  hooks.on_update = [&](const TrainProgress& progress) {
    if (progress.done.updates == stop_after) stop = true;
  };
  return train(options, hooks);
}

TrainOptions whole_run(const TrainingFolder& folder, const std::string& name) {
  TrainOptions options = folder.validated(name);
  options.source_bpe_dropout = 0.1;
  options.ema = 0.9;
  options.stop_after = {.updates = 22};
  options.checkpoint_every = {.updates = 4};
  options.average_last = 2;
  options.precision = Precision::kFloat32;
  return options;
}

std::vector<float> values_in(const TrainOptions& options) {
  const SafetensorsFile file = SafetensorsFile::open(list_checkpoints(options.run).back().path);
  std::vector<float> all;
  for (const std::string& name : file.names()) {
    const std::vector<float> values = file.read(name).to_vector();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST(Ranks, ARunStoppedAndResumedOnAsManyRanksEndsWithTheSameBits) {
  const TrainingFolder folder;
  for (const int ranks : {2, 3}) {
    const TrainOptions straight = whole_run(folder, fmt::format("straight-{}", ranks));
    EXPECT_EQ(train_on(ranks, straight).done.updates, 22);
    for (const int64_t stop : {1, 6, 13}) {
      TrainOptions options = whole_run(folder, fmt::format("run-{}-{}", ranks, stop));
      EXPECT_EQ(train_on(ranks, options, stop).done.updates, stop);
      options.workers = 2;
      train_on(ranks, options);
      EXPECT_EQ(model_of(options), model_of(straight)) << ranks << " ranks, stop " << stop;
      EXPECT_EQ(values_in(options), values_in(straight));
    }
  }
}

TEST(Ranks, ARunGoesOnOnAnyNumberOfRanks) {
  const TrainingFolder folder;
  const TrainOptions straight = without_noise(whole_run(folder, "straight"));
  train(straight);
  const TrainOptions two = without_noise(whole_run(folder, "two"));
  train_on(2, two, 9);
  for (const int ranks : {1, 4}) {
    TrainOptions options = two;
    options.run += fmt::format("-{}", ranks);
    std::filesystem::copy(two.run, options.run, std::filesystem::copy_options::recursive);
    const TrainResult result = ranks == 1 ? train(options) : train_on(ranks, options);
    EXPECT_EQ(result.done.updates, 22);
    EXPECT_LE(relative_error(values_in(options), values_in(straight)), 1e-4) << ranks;
  }
}

TEST(Ranks, AFailureOfAnotherRankIsInTheLogOfTheRun) {
  const TrainingFolder folder;
  const TrainOptions options = folder.options("run");
  Followers followers(1);
  auto ranks = make_local_communicators(2);
  TrainHooks hooks;
  hooks.ranks = ranks[0].get();
  hooks.on_update = [&](const TrainProgress& progress) {
    if (progress.done.updates == 12) ranks[1]->report_failure("out of memory", 1);
  };
  const std::jthread other([&] { EXPECT_THROW(follow(*ranks[1]), Error); });
  EXPECT_EQ(message_of([&] { train(options, hooks); }), "rank 1: out of memory");
  EXPECT_EQ(events_of(options.run, "error").back().at("message"), "rank 1: out of memory");
  EXPECT_EQ(load_latest_checkpoint(options.run)->step, 10);
}

}  // namespace
}  // namespace attend::testing
