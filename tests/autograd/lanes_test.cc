// Lanes add to one gradient in the order of their numbers, whoever runs them and when.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "attend/kernels/compute_thread.h"
#include "tests/autograd/op_harness.h"

namespace attend::testing {
namespace {

constexpr int32_t kLanes = 4;

/// Two layers over one table, with weights that several ops of a lane share.
class LaneModel {
 public:
  LaneModel() {
    table_ = &set.add("table", {30, 8}, normal(1));
    weight_ = &set.add("weight", {8, 8}, normal(0.5F));
    bias_ = &set.add("bias", {8}, normal(0.5F));
    gain_ = &set.add("gain", {8}, normal(1));
    shift_ = &set.add("shift", {8}, constant(0));
    untouched_ = &set.add("untouched", {3, 3}, constant(0));
    set.allocate(DType::kFloat32, true);
    set.initialize(11);
  }

  /// Forward and backward of one lane; even lanes leave out a layer, and pass its turn late.
  void run(int32_t lane) {
    prepare_compute_thread();
    Tape tape(lane);
    MemoryPool memory;
    Context context{.tape = &tape, .memory = &memory, .training = true, .random = {5, 0, 0}};
    context.random.lane = static_cast<uint32_t>(lane);
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < 10 + lane; ++i) ids.push_back((i * 7 + lane) % 30);
    const auto count = static_cast<int64_t>(ids.size());
    Variable x = embedding(context, {ids, share({0, 3, count}), {}}, *table_, 1, Tensor(), nullptr,
                           0.1F, false)
                     .residual;
    const Variable y = linear(context, x, *weight_, lane % 2 == 1 ? bias_ : nullptr);
    x = residual(context, x, linear(context, y, *weight_, nullptr), 0.2F);
    const Variable normed = layer_norm(context, x, *gain_, *shift_);
    project_cross_entropy(context, normed, *table_, ids, 0.1F, 0.01F);
    tape.backward();
    tape.finish(set);
  }

  ParameterSet set;

 private:
  Parameter *table_, *weight_, *bias_, *gain_, *shift_, *untouched_;
};

/// All lanes on some threads, each starting after a delay of its own.
std::vector<uint32_t> gradient_of_step(int threads, const std::vector<int>& delays_ms,
                                       int64_t parts) {
  LaneModel model;
  model.set.begin_step(kLanes);
  std::atomic<int32_t> next = 0;
  const auto work = [&] {
    for (int32_t lane = next++; lane < kLanes; lane = next++) {
      std::this_thread::sleep_for(
          std::chrono::milliseconds(delays_ms[static_cast<std::size_t>(lane)]));
      model.run(lane);
    }
  };
  std::vector<std::jthread> workers;
  for (int i = 0; i < threads; ++i) workers.emplace_back(work);
  workers.clear();  // joins
  for (int64_t part = 0; part < parts; ++part) model.set.add_sparse_gradients(part, parts);
  return bits_of(model.set.flat_gradient());
}

TEST(Lanes, TheSumIsTheSameForAnyNumberOfWorkers) {
  const std::vector<uint32_t> expected = gradient_of_step(1, {0, 0, 0, 0}, 1);
  for (const int threads : {1, 2, 3, 4}) {
    for (const auto& delays : std::vector<std::vector<int>>{
             {0, 0, 0, 0}, {20, 0, 0, 0}, {0, 15, 0, 5}, {15, 10, 5, 0}}) {
      for (const int64_t parts : {1, 3}) {
        EXPECT_EQ(gradient_of_step(threads, delays, parts), expected) << threads << " threads";
      }
    }
  }
}

TEST(Lanes, TheSumIsThatOfTheLanes) {
  const std::vector<float> together = [] {
    LaneModel model;
    model.set.begin_step(kLanes);
    for (int32_t lane = 0; lane < kLanes; ++lane) model.run(lane);
    model.set.add_sparse_gradients(0, 1);
    return model.set.flat_gradient().to_vector();
  }();
  std::vector<double> sum(together.size(), 0.0);
  for (int32_t lane = 0; lane < kLanes; ++lane) {
    LaneModel model;
    model.set.begin_step(kLanes);
    for (Parameter& parameter : model.set.parameters()) {
      for (int32_t earlier = 0; earlier < lane; ++earlier) parameter.pass_turn(earlier);
    }
    model.run(lane);
    model.set.add_sparse_gradients(0, 1);
    const std::vector<float> part = model.set.flat_gradient().to_vector();
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(part[i]);
  }
  EXPECT_LE(relative_error(together, sum), 1e-6);
}

TEST(Lanes, ALaneWaitsForTheOnesBeforeIt) {
  LaneModel model;
  model.set.begin_step(2);
  std::atomic<bool> done = false;
  std::jthread second([&] {
    model.run(1);
    done = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(done);
  model.run(0);
  second.join();
  EXPECT_TRUE(done);
}

TEST(Lanes, CancellingWakesEveryWaitingLane) {
  LaneModel model;
  model.set.begin_step(3);
  std::atomic<int> errors = 0;
  std::vector<std::jthread> workers;
  for (const int32_t lane : {1, 2}) {
    workers.emplace_back([&, lane] {
      try {
        model.run(lane);
      } catch (const Error&) {
        ++errors;
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(errors, 0);
  model.set.cancel_step();
  workers.clear();
  EXPECT_EQ(errors, 2);
  EXPECT_THROW(model.run(0), Error) << "a lane that starts after the step was cancelled";

  model.set.flat_gradient().zero();  // and the next step is a step like any other
  model.set.begin_step(kLanes);
  for (int32_t lane = 0; lane < kLanes; ++lane) model.run(lane);
  model.set.add_sparse_gradients(0, 1);
  EXPECT_EQ(bits_of(model.set.flat_gradient()), gradient_of_step(1, {0, 0, 0, 0}, 1));
}

TEST(Lanes, AFailingLaneStopsTheOthers) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    LaneModel model;
    model.set.begin_step(kLanes);
    std::atomic<int32_t> next = 0;
    std::atomic<int> errors = 0;
    const auto work = [&] {
      for (int32_t lane = next++; lane < kLanes; lane = next++) {
        try {
          if (lane == 1) fail("this lane has bad luck");
          model.run(lane);
        } catch (const Error&) {
          ++errors;
          model.set.cancel_step();
        }
      }
    };
    std::vector<std::jthread> workers;
    for (int i = 0; i < 3; ++i) workers.emplace_back(work);
    workers.clear();
    EXPECT_GE(errors, 3) << "the failing lane and those after it";
  }
}

}  // namespace
}  // namespace attend::testing
