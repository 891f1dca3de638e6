// A step in lanes: the same gradient, to the bit, for any number of workers.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "attend/base/error.h"
#include "attend/kernels/compute_thread.h"
#include "tests/support/models.h"

namespace attend::testing {
namespace {

constexpr int32_t kLanes = 4;

/// Nothing beside dropout, and everything.
const Regularization kRegularizations[] = {{}, {5, 0.3F, 0.1F, 0.1F}};

/// Loss and backward pass of one lane, with its own memory and random stream.
LossSums run_lane(Transformer& model, int32_t lane, const Regularization& regularization = {}) {
  prepare_compute_thread();
  const auto seed = static_cast<uint64_t>(lane);
  const TokenBatch source = batch_of(random_sentences(3, 7, 19, seed));
  const TokenBatch target = batch_of(random_sentences(3, 7, 19, seed + 100));
  Tape tape(lane);
  MemoryPool memory;
  Context context = context_for(model);
  context.tape = &tape;
  context.memory = &memory;
  context.training = true;
  context.regularization = regularization;
  context.random = {3, static_cast<uint32_t>(lane), 0};
  return model.loss(context, source, target, target.tokens, 0.1F);
}

struct Step {
  std::vector<uint32_t> gradient;
  double loss = 0;
};

/// All lanes on some threads; `jitter` makes them come in another order.
Step run_step(Transformer& model, int threads, uint64_t jitter,
              const Regularization& regularization = {}) {
  model.parameters().flat_gradient().zero();
  model.parameters().begin_step(kLanes);
  std::vector<LossSums> sums(kLanes);
  std::atomic<int32_t> next = 0;
  const auto work = [&] {
    for (int32_t lane = next++; lane < kLanes; lane = next++) {
      RandomGenerator random(jitter, static_cast<uint64_t>(lane));
      std::this_thread::sleep_for(std::chrono::milliseconds(random.uniform_index(4)));
      sums[static_cast<std::size_t>(lane)] = run_lane(model, lane, regularization);
    }
  };
  std::vector<std::jthread> workers;
  for (int i = 0; i < threads; ++i) workers.emplace_back(work);
  workers.clear();  // joins
  for (int64_t part = 0; part < threads; ++part) {
    model.parameters().add_sparse_gradients(part, threads);
  }
  LossSums total;
  for (const LossSums& each : sums) total += each;
  return {bits_of(model.parameters().flat_gradient()), total.loss};
}

TEST(TransformerLanes, AnyNumberOfWorkersMakesTheSameGradient) {
  for (auto& [name, config] : kinds_of_model()) {
    config.dropout = config.attention_dropout = 0.1F;
    for (const DType dtype : compute_dtypes()) {
      SCOPED_TRACE(name + ", " + std::string(name_of(dtype)));
      Transformer model(config, dtype, true);
      fill_weights(model, 2);
      for (const Regularization& regularization : kRegularizations) {
        const Step expected = run_step(model, 1, 0, regularization);
        for (const int threads : {1, 2, 3}) {
          for (const uint64_t jitter : {1, 2}) {
            const Step step = run_step(model, threads, jitter, regularization);
            EXPECT_EQ(step.gradient, expected.gradient) << threads << " threads";
            EXPECT_EQ(step.loss, expected.loss);
          }
        }
      }
    }
  }
}

struct Pass {
  std::vector<uint32_t> gradient;
  double loss = 0;
  int64_t peak_bytes = 0;
};

Pass run_pass(Transformer& model, bool recompute, int64_t sentences,
              const Regularization& regularization = {}) {
  model.parameters().flat_gradient().zero();
  model.parameters().begin_step(1);
  const TokenBatch batch = batch_of(random_sentences(sentences, 20, 19, 5));
  Tape tape;
  MemoryPool memory;
  Context context = context_for(model);
  context.tape = &tape;
  context.memory = &memory;
  context.training = true;
  context.recompute = recompute;
  context.regularization = regularization;
  const LossSums sums = model.loss(context, batch, batch, batch.tokens, 0.1F);
  model.parameters().add_sparse_gradients(0, 1);
  return {bits_of(model.parameters().flat_gradient()), sums.loss, memory.peak_bytes()};
}

TEST(TransformerLanes, RecomputingMakesTheSameGradient) {
  for (auto& [name, config] : kinds_of_model()) {
    config.dropout = config.attention_dropout = config.ffn_dropout = 0.1F;
    for (const DType dtype : compute_dtypes()) {
      SCOPED_TRACE(name + ", " + std::string(name_of(dtype)));
      Transformer model(config, dtype, true);
      fill_weights(model, 2);
      for (const Regularization& regularization : kRegularizations) {
        const Pass expected = run_pass(model, false, 3, regularization);
        const Pass again = run_pass(model, true, 3, regularization);
        EXPECT_EQ(again.gradient, expected.gradient);
        EXPECT_EQ(again.loss, expected.loss);
      }
    }
  }
}

TEST(TransformerLanes, RecomputingTakesLessMemory) {
  TransformerConfig config = small_config();
  config.encoder_layers = config.decoder_layers = 6;
  Transformer model(config, DType::kFloat32, true);
  fill_weights(model, 2);
  const int64_t all = run_pass(model, false, 200).peak_bytes;
  EXPECT_LT(run_pass(model, true, 200).peak_bytes, all / 2);
}

// Lane 2 meets a token that the model does not know; its worker cancels the step, and nobody waits
// for ever.
TEST(TransformerLanes, AFailingLaneEndsTheStepWithAnError) {
  Transformer model(small_config(), DType::kFloat32, true);
  fill_weights(model, 2);
  const Step expected = run_step(model, 1, 0);
  for (int attempt = 0; attempt < 10; ++attempt) {
    model.parameters().begin_step(kLanes);
    std::atomic<int32_t> next = 0;
    std::atomic<int> errors = 0;
    const auto work = [&] {
      for (int32_t lane = next++; lane < kLanes; lane = next++) {
        try {
          if (lane == 2) {
            Context context = context_for(model);
            model.encode(context, batch_of({{500}}));
          }
          run_lane(model, lane);
        } catch (const Error&) {
          ++errors;
          model.parameters().cancel_step();
        }
      }
    };
    std::vector<std::jthread> workers;
    for (int i = 0; i < 3; ++i) workers.emplace_back(work);
    workers.clear();
    EXPECT_GE(errors, 2);
  }
  EXPECT_EQ(run_step(model, 2, 1).gradient, expected.gradient) << "the next step is whole";
}

}  // namespace
}  // namespace attend::testing
