#include <gtest/gtest.h>

#include "tests/train/support.h"

namespace attend {
namespace {

std::vector<std::string> all_below(const Path& folder) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    found.push_back(entry.path().string() + (entry.is_regular_file() ? get(entry.path()) : ""));
  }
  std::sort(found.begin(), found.end());
  return found;
}

TEST(Contract16, ADryRunSaysWhatTheRunNeedsAndWritesNothing) {
  const TrainingFolder folder;
  for (const bool trains_tokenizer : {false, true}) {
    TrainOptions options = folder.options("runs/new");
    if (trains_tokenizer) {
      options.tokenizer.clear();
      options.vocabulary_size = 320;
    }
    const auto before = all_below(folder.path());
    const std::string text = dry_run(options);
    EXPECT_EQ(all_below(folder.path()), before);
    for (const char* part : {"200 pairs", "weights", "MiB free", "MiB available", "memory",
                             "an update", "with 1 worker"}) {
      expect_contains(text, part);
    }
    expect_contains(text, trains_tokenizer ? "320 source, 320 target" : "330 source, 330 target");
  }
}

TEST(Contract16, OfALongTextItReadsTheBeginning) {
  const TrainingFolder folder;
  constexpr int64_t kPairs = 100'000;
  const std::string text = sentences(kPairs, 5);
  put(folder.file("train.a"), text);
  put(folder.file("train.b"), in_capitals(text));
  TrainOptions options = folder.options("run");
  options.stop_after = {.updates = 1};
  const std::string dry = dry_run(options);
  expect_contains(dry, "pairs        about ");
  expect_contains(dry, ", by the first 20000 of the text");
  EXPECT_NEAR(std::stod(dry.substr(dry.find("about ") + 6)), kPairs, 2000);
  expect_contains(dry, " MiB of token ids)");
  train(options);
  expect_contains(dry_run(options), " 0 MiB of token ids)");  // they are there
  // Elsewhere.
  options.cache = folder.file("cache");
  const std::string elsewhere = dry_run(options);
  expect_contains(elsewhere, " MiB of token ids in " + options.cache + ", ");
  const double megabytes = std::stod(elsewhere.substr(elsewhere.find("cache ") + 6));
  EXPECT_NEAR(megabytes, 6.1, 1.1) << "16 bytes a pair and about 48 for its 24 tokens";
  EXPECT_FALSE(std::filesystem::exists(options.cache));
}

TEST(Contract16, TheDiskItNamesIsWhatTheRunTakes) {
  const TrainingFolder folder;
  TrainOptions options = folder.validated("run");
  options.model.d_model = 128;
  options.model.d_ff = 256;
  options.stop_after = {.updates = 20};
  options.checkpoint_every = {.updates = 4};
  options.validate_every = {.updates = 4};
  const std::string text = dry_run(options);
  const std::size_t at = text.find("disk") + 4;
  const double megabytes = std::stod(text.substr(at));
  train(options);
  double used = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(options.run)) {
    if (entry.is_regular_file()) used += static_cast<double>(entry.file_size());
  }
  used /= 1 << 20;
  EXPECT_LE(used, megabytes + 1);
  EXPECT_GE(used, megabytes / 3);
}

TEST(Contract16, ARunThatIsThereStaysAsItIs) {
  const TrainingFolder folder;
  const TrainOptions options = folder.options("run");
  train_until(options, 12);
  put(options.tokenizer, "the run has its own");
  const auto before = all_below(folder.path());
  expect_contains(dry_run(options), "200 pairs");
  EXPECT_EQ(all_below(folder.path()), before);
}

TEST(Contract16, WhatIsMissingOrWrongIsNamed) {
  const TrainingFolder folder;
  TrainOptions options = folder.options("run");
  const TrainOptions good = options;
  options.train_target = {folder.file("missing")};
  expect_contains(message_of([&] { dry_run(options); }), folder.file("missing").string());
  options = good;
  put(folder.file("short"), "ONE\n");
  options.train_target = {folder.file("short")};
  expect_contains(message_of([&] { dry_run(options); }), folder.file("short").string());
  options = good;
  options.tokenizer = options.train_source[0];
  expect_contains(message_of([&] { dry_run(options); }), options.tokenizer);
  options = good;
  options.dry_run = true;
  options.accumulate = 0;
  expect_contains(message_of([&] { dry_run(options); }), "accumulate");
  options = good;
  options.run = options.train_source[0];
  expect_contains(message_of([&] { dry_run(options); }), options.run + " is not a folder");
  options = good;
  options.tensorboard = options.train_source[0];
  const std::string refusal = "tensorboard: " + options.tensorboard + " is not a folder";
  expect_contains(message_of([&] { dry_run(options); }), refusal);
  expect_contains(message_of([&] { train(options); }), refusal);
}

TEST(Contract16, DisksThatAreTooSmallOrReadOnlyAreNamed) {
  SmallDisk disk("300k");
  if (!disk.mounted()) GTEST_SKIP() << disk.reason();
  const TrainingFolder folder;
  TrainOptions options = folder.options("");
  options.run = disk.path() / "run";
  options.keep_last = 50;
  const std::string message = message_of([&] { dry_run(options); });
  expect_contains(message, options.run + " has 0 MiB free, and the run will need ");
  disk.make_read_only();
  expect_contains(message_of([&] { dry_run(options); }), "Read-only file system");
}

TEST(Contract16, ModelsThatMemoryCannotHoldAreRefusedBeforeTheyAreAllocated) {
  const TrainingFolder folder;
  TrainOptions options = folder.options("");
  options.run.clear();
  options.model.d_model = 1 << 14;
  options.model.d_ff = 1 << 16;
  options.model.encoder_layers = options.model.decoder_layers = 100;
  const std::string message = message_of([&] { dry_run(options); });
  expect_contains(message, "weights and training it takes ");
  expect_contains(message, "choose a smaller model");
}

}  // namespace
}  // namespace attend
