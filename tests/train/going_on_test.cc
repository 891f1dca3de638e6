// Contract 14: going on with a run, and where its options come from (13).
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "attend/train/run_folder.h"
#include "tests/train/process.h"
#include "tests/train/support.h"

namespace attend {
namespace {

TEST(Contract14, AFinishedRunSaysSoAndDoesNothing) {
  const TrainingFolder folder;
  const TrainOptions options = folder.options("run");
  train(options);
  const std::string model = model_of(options);
  const auto time = std::filesystem::last_write_time(checkpoint_path(options.run, 30));
  TrainHooks hooks;
  hooks.on_update = [](const TrainProgress&) { ADD_FAILURE() << "it trained"; };
  hooks.recipe = "changed: true\n";
  const TrainResult result = train(options, hooks);
  EXPECT_TRUE(result.already_finished);
  EXPECT_EQ(result.finished, "stop_after 30u reached");
  EXPECT_EQ(result.go_on_with, "--stop-after ...");
  EXPECT_EQ(result.done.updates, 30);
  EXPECT_EQ(model_of(options), model);
  EXPECT_EQ(std::filesystem::last_write_time(checkpoint_path(options.run, 30)), time);
  EXPECT_FALSE(std::filesystem::exists(Path(options.run) / "recipe.yaml"));
}

TEST(Contract14, ALargerLimitGoesOnAsIfItHadBeenThere) {
  const TrainingFolder folder;
  TrainOptions options = folder.options("run");
  const std::string expected = straight_model(options);
  options.stop_after = {.updates = 12};
  train(options);
  options.stop_after = {.updates = 30};
  const TrainResult result = train(options);
  EXPECT_FALSE(result.already_finished);
  EXPECT_EQ(model_of(options), expected);
}

TEST(Contract14, TheTimeLeftIsToldByThePaceOfThisPart) {
  const TrainingFolder folder;
  TrainOptions options = folder.options("run");
  options.stop_after = {.updates = 3};
  TrainHooks hooks;
  hooks.on_update = [](const TrainProgress&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  };
  train(options, hooks);
  options.stop_after = {.updates = 30};
  const auto start = std::chrono::steady_clock::now();
  int64_t told = 0;
  hooks.on_update = [&](const TrainProgress& progress) {
    if (progress.done.updates < 20) return;
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    // Less is left than this part has done; with the 1.5 s of the first three it would be more.
    EXPECT_LT(progress.seconds_left, taken.count());
    ++told;
  };
  train(options, hooks);
  EXPECT_EQ(told, 11);
}

TEST(Contract14, AnEarlyStopNamesPatience) {
  const TrainingFolder folder;
  TrainOptions options = folder.worsening("run");
  options.patience = 2;
  const int64_t stopped = train(options).done.updates;
  ASSERT_LT(stopped, 30);
  options.stop_after = {.updates = 60};
  TrainResult result = train(options);
  EXPECT_TRUE(result.already_finished);
  EXPECT_EQ(result.finished, "no improvement in 2 validations");
  EXPECT_EQ(result.go_on_with, "--patience ...");
  const Finished finished = run_attend_command(train_arguments(options));
  EXPECT_EQ(finished.status, 0);
  expect_contains(finished.err, "attend train --run " + options.run + " --patience ...");
  options.patience = 3;
  result = train(options);
  EXPECT_FALSE(result.already_finished);
  EXPECT_GT(result.done.updates, stopped);
}

TEST(Contract14, WorkersLimitsAndLoggingMayChange) {
  const TrainingFolder folder;
  TrainOptions options = folder.options("run");
  options.ema = 0.9;
  options.stop_after = {.updates = 40};
  const std::string expected = straight_model(options);
  options.stop_after = {.updates = 13};
  ASSERT_EQ(run_attend_command(train_arguments(options)).status, 0);
  const Finished finished = run_attend_command(
      {"train", "--run", options.run, "--workers", "2", "--log-every", "3", "--checkpoint-every",
       "7u", "--keep-last", "2", "--validate-every", "9u", "--stop-after", "40u"});
  EXPECT_EQ(finished.status, 0) << finished.err;
  EXPECT_EQ(model_of(options), expected);
}

TEST(Contract14, OtherDataIsRefused) {
  const TrainingFolder folder;
  const TrainOptions options = folder.options("run");
  train_until(options, 12);
  put(options.train_source[0], "one more\n" + get(options.train_source[0]));
  put(options.train_target[0], "ONE MORE\n" + get(options.train_target[0]));
  const std::string message = message_of([&] { train(options); });
  expect_contains(message, "the training data is not what run " + options.run);
  const Finished finished = run_attend_command(train_arguments(options));
  EXPECT_EQ(finished.status, 2);
}

TEST(Contract14, DataThatWasMovedIsNamedByFlags) {
  const TrainingFolder folder;
  TrainOptions options = folder.validated("run");
  const std::string expected = straight_model(options);
  options.stop_after = {.updates = 12};
  ASSERT_EQ(run_attend_command(train_arguments(options)).status, 0);
  const Path moved = folder.file("moved");
  std::filesystem::create_directory(moved);
  for (const char* name : {"train.a", "train.b", "valid.a", "valid.b", "tokenizer"}) {
    std::filesystem::rename(folder.file(name), moved / name);
  }
  const Finished lost = run_attend_command({"train", "--run", options.run, "--stop-after", "30u"});
  EXPECT_EQ(lost.status, 1);
  expect_contains(lost.err, folder.file("valid.a").string() + ": No such file");
  const Finished found = run_attend_command(
      {"train", "--run", options.run, "--stop-after", "30u", "--train-source", moved / "train.a",
       "--train-target", moved / "train.b", "--valid-source", moved / "valid.a", "--valid-target",
       moved / "valid.b", "--tokenizer", moved / "tokenizer"});
  EXPECT_EQ(found.status, 0) << found.err;
  EXPECT_EQ(found.err.find("warning"), std::string::npos) << found.err;
  EXPECT_EQ(model_of(options), expected);
}

TEST(Contract14, TheSameTextCutIntoOtherCorporaIsOtherData) {
  const TrainingFolder folder;
  TrainOptions options = folder.options("run");
  train_until(options, 12);
  for (const std::string& side : {std::string("a"), std::string("b")}) {
    const std::string text = get(folder.file("train." + side));
    std::size_t cut = 0;
    for (int64_t line = 0; line < TrainingFolder::kPairs / 2; ++line)
      cut = text.find('\n', cut) + 1;
    put(folder.file("first." + side), text.substr(0, cut));
    put(folder.file("second." + side), text.substr(cut));
  }
  options.train_source = {folder.file("first.a"), folder.file("second.a")};
  options.train_target = {folder.file("first.b"), folder.file("second.b")};
  expect_contains(message_of([&] { train(options); }), "the training data is not what run");
}

TEST(Contract14, OtherValidationDataIsSaid) {
  const TrainingFolder folder;
  TrainOptions options = folder.validated("run");
  train_until(options, 12);
  options.valid_source = options.train_source[0];
  options.valid_target = options.train_target[0];
  const auto log_until = [&](int64_t update) {
    const CapturedLog log;
    train_until(options, update);
    return log.text();
  };
  const std::string warning = "the validation data is not what run " + options.run;
  expect_contains(log_until(18), warning);
  EXPECT_EQ(log_until(20).find(warning), std::string::npos) << "it has been said";
  options.valid_source.clear();
  options.valid_target.clear();
  expect_contains(log_until(22), "has no validation data now: its model stays the best so far");
}

TEST(Contract14, AnotherTokenizerIsNotUsed) {
  const TrainingFolder folder;
  TrainOptions options = folder.options("run");
  const std::string expected = straight_model(options);
  train_until(options, 12);
  options.tokenizer = folder.file("train.a");
  const CapturedLog log;
  train(options);
  expect_contains(log.text(), options.tokenizer + " is not the tokenizer of the run");
  EXPECT_EQ(model_of(options), expected);
}

TEST(Contract14, TwoTrainingsInOneFolder) {
  const TrainingFolder folder;
  TrainOptions options = folder.options("run");
  options.stop_after = {.updates = 1000000};
  Process first(train_arguments(options), folder.path());
  ASSERT_TRUE(first.wait_until([&] { return !checkpoints_of(options).empty(); })) << first.err();
  const Finished second = run_attend_command(train_arguments(options));
  EXPECT_EQ(second.status, 1);
  expect_contains(second.err, "another training (process ");
  expect_contains(second.err, options.run);
}

TEST(Contract14, ARunFromBeforeGoesOnByItsRecipe) {
  const TrainingFolder folder;
  TrainOptions options = folder.options("run");
  const std::string expected = straight_model(options);
  options.stop_after = {.updates = 12};
  train(options);  // its checkpoints hold no options
  std::vector<std::string> arguments = train_arguments(options);
  arguments.emplace_back("--dump-config");
  put(recipe_path(options.run), run_attend_command(arguments).out);
  const Finished finished =
      run_attend_command({"train", "--run", options.run, "--stop-after", "30u"});
  EXPECT_EQ(finished.status, 0) << finished.err;
  EXPECT_EQ(finished.err.find("warning"), std::string::npos) << finished.err;
  EXPECT_EQ(model_of(options), expected);
  EXPECT_EQ(recipe_of_checkpoints(options.run), get(recipe_path(options.run)));
}

TEST(Contract13Run, ARecipeThatWasChangedOrDamagedIsIgnoredAndWrittenAnew) {
  const TrainingFolder folder;
  TrainOptions options = folder.options("run");
  options.stop_after = {.updates = 12};
  ASSERT_EQ(run_attend_command(train_arguments(options)).status, 0);
  const Path recipe = Path(options.run) / "recipe.yaml";
  const std::string whole = get(recipe);
  options.stop_after = {.updates = 14};
  const std::string expected = straight_model(options);
  const std::string changed = whole.substr(0, whole.find("seed: ")) + "seed: 7\n";
  for (const std::string& text : {whole.substr(0, whole.size() / 2), changed, std::string()}) {
    put(recipe, text);
    const Finished finished = run_attend_command({"train", "--run", options.run});
    EXPECT_EQ(finished.status, 0) << finished.err;
    expect_contains(finished.err, recipe.string() + " was changed or damaged, and is ignored");
    expect_contains(finished.err, "is finished: stop_after 12u reached");
    EXPECT_EQ(get(recipe), whole);
  }
  std::filesystem::remove(recipe);
  const Finished finished =
      run_attend_command({"train", "--run", options.run, "--stop-after", "14u"});
  EXPECT_EQ(finished.status, 0) << finished.err;
  EXPECT_EQ(model_of(options), expected);
  EXPECT_EQ(run_attend_command({"train", "--run", options.run}).err.find("warning"),
            std::string::npos);
}

TEST(Contract13Run, WhatAPartIsAskedForIsKeptBeforeItsFirstCheckpoint) {
  const TrainingFolder folder;
  TrainOptions options = folder.options("run");
  TrainHooks hooks;
  hooks.recipe = "one\n";
  options.stop_after = {.updates = 12};
  train(options, hooks);
  EXPECT_EQ(recipe_of_checkpoints(options.run), "one\n");
  const std::string before = model_of(options);
  options.stop_after = {.updates = 30};
  hooks.recipe = "two\n";
  hooks.on_update = [](const TrainProgress&) { throw std::runtime_error("killed"); };
  EXPECT_THROW(train(options, hooks), std::runtime_error);
  EXPECT_EQ(checkpoints_of(options).back(), 12);
  EXPECT_EQ(recipe_of_checkpoints(options.run), "two\n");
  EXPECT_TRUE(holds_recipe(options.run, "two\n"));
  truncate_by_half(checkpoint_path(options.run, 12));
  EXPECT_EQ(recipe_of_checkpoints(options.run), "one\n") << "of the one before";
  hooks.on_update = {};
  const CapturedLog log;
  EXPECT_EQ(train(options, hooks).done.updates, 30);
  EXPECT_EQ(model_of(options), straight_model(options));
}

}  // namespace
}  // namespace attend
