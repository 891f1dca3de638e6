#include "attend/train/run_state.h"

#include <set>

#include <gtest/gtest.h>

#include "attend/kernels/activation.h"
#include "tests/io/support.h"
#include "tests/support/numbers.h"

namespace attend {
namespace {

using testing::bits_of;

RunState full_state() {
  RunState state;
  state.done = {.epochs = 1.5, .updates = 1234, .tokens = int64_t{5} << 32, .seconds = 1.0 / 3};
  state.position = {.epoch = 1, .window = 2, .batch = 3};
  state.pairs_in_epoch_done = 77;
  state.source_tokens = int64_t{6} << 32;
  state.skipped_updates = 4;
  state.bad_steps_in_row = 2;
  state.last_validation = {.epochs = 1.25, .updates = 1200, .tokens = 9, .seconds = 0.1};
  state.last_checkpoint = {.epochs = 1.125, .updates = 1100, .tokens = 8, .seconds = 0.2};
  state.best_criterion = -0.1;
  state.best_loss = 0.5;
  state.best_update = 1200;
  state.validations_without_improvement = 5;
  state.scheduled = {1000, 1100, 1200};
  state.average_is_model = true;
  state.finished = "stop_after 1234u reached";
  state.precision = "bfloat16";
  state.data_fingerprint = "0123456789abcdef";
  state.validation_fingerprint = "fedcba9876543210";
  state.recipe = "seed: 1\n";
  return state;
}

TEST(RunState, EveryFieldGoesBothWays) {
  const nlohmann::json written = full_state().to_json();
  const nlohmann::json again =
      RunState::from_json(nlohmann::json::parse(written.dump()), "file").to_json();
  EXPECT_EQ(again, written);
  const nlohmann::json empty = RunState().to_json();
  ASSERT_EQ(empty.size(), written.size());
  for (const auto& [key, value] : written.items()) {
    if (key == "attend_version") continue;
    EXPECT_NE(value, empty.at(key)) << key << " was not set";
  }
  EXPECT_FALSE(RunState::from_json(empty, "file").best_criterion.has_value());
}

TEST(RunState, WhatCannotBeReadNamesTheFile) {
  const nlohmann::json good = full_state().to_json();
  for (const auto& [key, value] : good.items()) {
    static const std::set<std::string> kLackedByOlderOnes = {
        "attend_version", "scheduled_checkpoints",  "average_is_model",
        "best_loss",      "validation_fingerprint", "recipe"};
    if (kLackedByOlderOnes.contains(key)) continue;
    nlohmann::json lacking = good;
    lacking.erase(key);
    const std::string message =
        message_of([&] { RunState::from_json(lacking, "step-7.safetensors"); });
    expect_contains(message, "step-7.safetensors");
    expect_contains(message, key);
    nlohmann::json wrong = good;
    wrong[key] = nlohmann::json::object({{"x", 1}});
    expect_contains(message_of([&] { RunState::from_json(wrong, "step-7.safetensors"); }),
                    "step-7.safetensors");
  }
  expect_contains(message_of([&] { RunState::from_json(nlohmann::json::array(), "f"); }), "f: ");
}

TEST(RunState, TheLastScheduledCheckpointsAreKnown) {
  RunState state;
  for (const int64_t update : {10, 20, 20, 30, 40}) state.note_scheduled(update, 3);
  EXPECT_EQ(state.scheduled, (std::vector<int64_t>{20, 30, 40}));
  state.note_scheduled(50, 1);
  EXPECT_EQ(state.scheduled, std::vector<int64_t>{50});
}

TransformerConfig small_config(int64_t d_ff) {
  TransformerConfig config = preset("tiny");
  config.source_vocabulary_size = config.target_vocabulary_size = 20;
  config.encoder_layers = config.decoder_layers = 1;
  config.d_model = 8;
  config.d_ff = d_ff;
  config.heads = 2;
  return config;
}

/// A model with its engine, all numbers drawn from `seed`.
struct Trained {
  explicit Trained(uint64_t seed, DType compute = DType::kFloat32, int64_t d_ff = 12)
      : model(small_config(d_ff), compute, true) {
    options.ema = 0.9;
    model.initialize(seed);
    engine = std::make_unique<Engine>(model, options, 1);
    const int64_t size = model.parameters().flat_size();
    engine->first_moment().assign(testing::random_values(size, seed + 1));
    engine->second_moment().assign(testing::random_values(size, seed + 2));
    engine->average().assign(testing::random_values(size, seed + 3));
  }
  TrainOptions options;
  Transformer model;
  std::unique_ptr<Engine> engine;
};

/// The numbers of every parameter; what lies between them for alignment is nobody's.
std::vector<uint32_t> parameter_bits(const Transformer& model, const Tensor& flat) {
  std::vector<uint32_t> all;
  for (const auto& [name, view] : model.parameters().views(flat)) {
    for (const uint32_t bits : bits_of(view)) all.push_back(bits);
  }
  return all;
}

TEST(RunState, SavedAndRestoredWithAllTensors) {
  const TemporaryFolder run;
  const Trained saved(1, testing::compute_dtypes().back());
  save_run(run.path(), full_state(), saved.model, *saved.engine);
  Trained restored(100, testing::compute_dtypes().back());
  const auto checkpoint = load_latest_checkpoint(run.path());
  ASSERT_TRUE(checkpoint.has_value());
  EXPECT_EQ(checkpoint->step, 1234);
  const RunState state = restore_run(*checkpoint, restored.model, *restored.engine);
  EXPECT_EQ(state.to_json(), full_state().to_json());
  const auto same = [&](const Tensor& a, const Tensor& b) {
    EXPECT_EQ(parameter_bits(saved.model, a), parameter_bits(restored.model, b));
  };
  same(saved.model.parameters().flat_master(), restored.model.parameters().flat_master());
  same(saved.engine->first_moment(), restored.engine->first_moment());
  same(saved.engine->second_moment(), restored.engine->second_moment());
  same(saved.engine->average(), restored.engine->average());
  for (const Parameter& parameter : restored.model.parameters().parameters()) {
    const Tensor expected(parameter.shape, restored.model.compute());
    convert(parameter.master, expected);
    EXPECT_EQ(bits_of(parameter.compute), bits_of(expected)) << parameter.name;
  }
}

TEST(RunState, ACheckpointOfAnotherModelIsRefused) {
  const TemporaryFolder run;
  const Trained saved(1);
  save_run(run.path(), full_state(), saved.model, *saved.engine);
  Trained other(1, DType::kFloat32, 16);
  const auto checkpoint = load_latest_checkpoint(run.path());
  const std::string message =
      message_of([&] { restore_run(*checkpoint, other.model, *other.engine); });
  expect_contains(message, checkpoint_path(run.path(), 1234).string());
  expect_contains(message, "feed_forward");
}

}  // namespace
}  // namespace attend
