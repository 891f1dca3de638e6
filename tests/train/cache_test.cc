// Contracts 10 and 20 of a whole run: the cache of its training text.
#include <gtest/gtest.h>

#include "tests/train/process.h"
#include "tests/train/support.h"

namespace attend {
namespace {

TEST(Contract10Run, TheCacheIsInTheRunOrWhereTheOptionSays) {
  const TrainingFolder folder;
  TrainOptions options = folder.options("run");
  train(options);
  EXPECT_EQ(entries_of(Path(options.run) / "cache").size(), 1U);
  const std::string expected = model_of(options);
  options.run = folder.file("other");
  options.cache = folder.file("cache");
  train(options);
  EXPECT_FALSE(std::filesystem::exists(Path(options.run) / "cache"));
  EXPECT_EQ(entries_of(options.cache).size(), 1U);
  EXPECT_EQ(model_of(options), expected);
}

TEST(Contract10Run, AnotherRunAndAResumedOneReadTheCacheAndReportTheSame) {
  const TrainingFolder folder;
  const std::string bad = get(folder.file("train.a")) + "\n";
  put(folder.file("train.a"), bad);
  put(folder.file("train.b"), get(folder.file("train.b")) + "NOTHING\n");
  TrainOptions options = folder.options("run");
  options.cache = folder.file("cache");
  train_until(options, 12);
  // As large as before and of the same time, but no text: it would be an error to read it.
  const auto time = std::filesystem::last_write_time(folder.file("train.a"));
  put(folder.file("train.a"), std::string(bad.size(), '\0'));
  std::filesystem::last_write_time(folder.file("train.a"), time);
  for (const char* run : {"run", "other"}) {
    options.run = folder.file(run);
    const CapturedLog log;
    EXPECT_EQ(train(options).done.updates, 30);
    expect_contains(log.text(), "200 pairs; left out 1: 1 empty");
  }
  EXPECT_EQ(model_of(folder.file("run")), model_of(folder.file("other")));
  const nlohmann::json start = events_of(folder.file("other"), "start").at(0);
  EXPECT_EQ(start.at("data").at("empty"), 1);
}

TEST(Contract10Run, StoppedWhileTextIsReadItGoesOnFromThere) {
  const TrainingFolder folder;
  const std::string text = sentences(80'000, 5);
  put(folder.file("train.a"), text);
  put(folder.file("train.b"), in_capitals(text));
  TrainOptions options = folder.options("run");
  options.stop_after = {.updates = 3};
  TrainOptions straight = options;
  straight.run += "-straight";
  train(straight);
  std::atomic<bool> stop = false;
  TrainHooks hooks;
  hooks.stop = &stop;
  int64_t reported = 0;
  hooks.on_reading = [&](const CorpusProgress& progress) {
    reported = progress.pairs;
    stop = true;
  };
  {
    const CapturedLog log;
    const TrainResult result = train(options, hooks);
    if (reported == 0) GTEST_SKIP() << "this machine reads 80 000 pairs in less than 0.1 s";
    EXPECT_EQ(result.done.updates, 0);
    EXPECT_TRUE(result.finished.empty());
    expect_contains(log.text(), "the same command goes on from there");
  }
  EXPECT_EQ(train(options).done.updates, 3);
  EXPECT_EQ(model_of(options), model_of(straight));
}

TEST(Contract10Run, TheCommandTakesTheOption) {
  const TrainingFolder folder;
  TrainOptions options = folder.options("run");
  options.stop_after = {.updates = 1};
  std::vector<std::string> arguments = train_arguments(options);
  arguments.insert(arguments.end(), {"--cache", folder.file("cache")});
  const Finished finished = run_attend_command(arguments);
  EXPECT_EQ(finished.status, 0) << finished.err;
  EXPECT_EQ(entries_of(folder.file("cache")).size(), 1U);
  // A later start may name another.
  const Finished again = run_attend_command(
      {"train", "--run", options.run, "--cache", folder.file("new"), "--stop-after", "2u"});
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(entries_of(folder.file("new")).size(), 1U);
}

TEST(Contract20Run, ARunOfAVersionThatMadeOtherBatchesIsNamed) {
  const TrainingFolder folder;
  const TrainOptions options = folder.options("run");
  train_until(options, 12);
  const Checkpoint checkpoint = *load_latest_checkpoint(options.run);
  NamedTensors tensors;
  for (const std::string& name : checkpoint.file.names()) {
    tensors.emplace_back(name, checkpoint.file.read(name));
  }
  nlohmann::json state = checkpoint.state;
  state["data_fingerprint"] = "0123456789abcdef";
  state["attend_version"] = "0.0.9";
  save_checkpoint(options.run, checkpoint.step, tensors, state);
  const std::string message = message_of([&] { train(options); });
  expect_contains(message, options.run + " was started by an older attend (0.0.9)");
  expect_contains(message, "start another run with --run");
}

}  // namespace
}  // namespace attend
