// Contracts 13, 15 and 17 of a whole run.
#include <sys/stat.h>

#include <gtest/gtest.h>

#include <fstream>

#include "attend/io/model_directory.h"
#include "tests/train/process.h"
#include "tests/train/support.h"

namespace attend {
namespace {

void flip_last_byte(const Path& path) {
  std::string bytes = get(path);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  put(path, bytes);
}

// ------------------------------------------------------------------------------ 13: disks, damage

TEST(Contract13Run, AFullDiskIsNamedAndTheLastCheckpointIsGoneOnWith) {
  SmallDisk disk("8m");
  if (!disk.mounted()) GTEST_SKIP() << disk.reason();
  const TrainingFolder folder;
  TrainOptions options = folder.options("run");
  const std::string expected = straight_model(options);
  options.run = disk.path() / "run";
  TrainHooks hooks;
  hooks.on_update = [&](const TrainProgress& progress) {
    if (progress.done.updates != 15) return;
    std::ofstream filler(disk.path() / "filler", std::ios::binary);
    for (int i = 0; i < 20; ++i) filler << std::string(1 << 20, 'x') << std::flush;
  };
  const std::string message = message_of([&] { train(options, hooks); });
  expect_contains(message, "cannot write " + options.run);
  expect_contains(message, "No space left on device; free some space there");
  EXPECT_EQ(checkpoints_of(options), std::vector<int64_t>{10});
  EXPECT_EQ(load_latest_checkpoint(options.run)->step, 10);
  events_of(options.run);  // a line that did not fit is absent

  std::filesystem::remove(disk.path() / "filler");
  EXPECT_EQ(train(options).done.updates, 30);
  EXPECT_EQ(model_of(options), expected);
  EXPECT_EQ(events_of(options.run, "finish").size(), 1U);
}

TEST(Contract13Run, AFullDiskFailsTheCommandWithAMessage) {
  SmallDisk disk("64k");
  if (!disk.mounted()) GTEST_SKIP() << disk.reason();
  const TrainingFolder folder;
  TrainOptions options = folder.options("");
  options.run = disk.path() / "run";
  const Finished finished = run_attend_command(train_arguments(options));
  EXPECT_EQ(finished.status, 1);
  expect_contains(finished.err, "error: cannot write " + options.run);
  expect_contains(finished.err, "No space left on device");
}

TEST(Contract13Run, AReadOnlyRunFolderIsNamedAndNothingIsLost) {
  SmallDisk disk("16m");
  if (!disk.mounted()) GTEST_SKIP() << disk.reason();
  const TrainingFolder folder;
  TrainOptions options = folder.options("");
  options.run = disk.path() / "run";
  train_until(options, 15);
  const std::string before = model_of(options);
  disk.make_read_only();
  const Finished finished = run_attend_command(train_arguments(options));
  EXPECT_EQ(finished.status, 1);
  expect_contains(finished.err, options.run);
  expect_contains(finished.err, "Read-only file system");
  EXPECT_EQ(model_of(options), before);
  EXPECT_EQ(load_latest_checkpoint(options.run)->step, 15);
  // A new run there is refused in the same way.
  options.run = disk.path() / "new";
  expect_contains(message_of([&] { train(options); }), "Read-only file system");
}

TEST(Contract13Run, DamagedCheckpointsFallBackToTheLastWholeOne) {
  const TrainingFolder folder;
  TrainOptions options = folder.options("run");
  const std::string expected = straight_model(options);
  train_until(options, 25);
  ASSERT_EQ(checkpoints_of(options), (std::vector<int64_t>{10, 20, 25}));
  truncate_by_half(checkpoint_path(options.run, 25));
  flip_last_byte(checkpoint_path(options.run, 20));
  const CapturedLog log;
  EXPECT_EQ(train(options).done.updates, 30);
  expect_contains(log.text(), checkpoint_path(options.run, 25).string());
  expect_contains(log.text(), "it was cut off");
  expect_contains(log.text(), checkpoint_path(options.run, 20).string());
  expect_contains(log.text(), "after update 10");
  EXPECT_EQ(model_of(options), expected);
  EXPECT_EQ(checkpoints_of(options), (std::vector<int64_t>{10, 20, 30}));
}

TEST(Contract13Run, WithoutAWholeCheckpointNothingIsThrownAway) {
  const TrainingFolder folder;
  const TrainOptions options = folder.options("run");
  train_until(options, 12);
  for (const int64_t step : checkpoints_of(options)) {
    truncate_by_half(checkpoint_path(options.run, step));
  }
  const std::string before = model_of(options);
  expect_contains(message_of([&] { train(options); }), "none of the 2 checkpoints in ");
  EXPECT_EQ(model_of(options), before);
  EXPECT_EQ(checkpoints_of(options).size(), 2U);
}

TEST(Contract13Run, LostCheckpointsAreNotAFreshStart) {
  const TrainingFolder folder;
  const TrainOptions options = folder.options("run");
  train_until(options, 12);
  const std::string before = model_of(options);
  std::filesystem::rename(Path(options.run) / "checkpoints", folder.file("elsewhere"));
  for (const auto& work : {std::function([&] { train(options); }), {[&] { dry_run(options); }}}) {
    const std::string message = message_of(work);
    expect_contains(message, "run " + options.run +
                                 " had checkpoints, the last of them after "
                                 "update 12, and there is none in " +
                                 options.run + "/checkpoints");
    expect_contains(message, "put them back");
    expect_contains(message, "another --run");
  }
  EXPECT_EQ(model_of(options), before);
  std::filesystem::rename(folder.file("elsewhere"), Path(options.run) / "checkpoints");
  EXPECT_EQ(train(options).done.updates, 30);
}

/// What may happen to the files in the root of a run.
using Damage = void (*)(const Path& run);
const std::pair<const char*, Damage> kDamages[] = {
    {"model cut", [](const Path& run) { truncate_by_half(run / kWeightsFile); }},
    {"model flipped", [](const Path& run) { flip_last_byte(run / kWeightsFile); }},
    {"model gone", [](const Path& run) { std::filesystem::remove(run / kWeightsFile); }},
    {"config cut", [](const Path& run) { truncate_by_half(run / kConfigFile); }},
    {"config gone", [](const Path& run) { std::filesystem::remove(run / kConfigFile); }},
    {"tokenizer cut", [](const Path& run) { truncate_by_half(run / kTokenizerFile); }},
    {"tokenizer gone", [](const Path& run) { std::filesystem::remove(run / kTokenizerFile); }},
};

TEST(Contract13Run, ADamagedModelInTheRootIsMadeAgain) {
  const TrainingFolder folder;
  const TrainOptions options = folder.worsening("run");
  const std::string expected = straight_model(options);
  train_until(options, 25);
  ASSERT_EQ(model_of(options), expected) << "the test wants a best model so early that nothing "
                                            "writes the root later on";
  for (const auto& [name, damage] : kDamages) {
    SCOPED_TRACE(name);
    TrainOptions damaged = options;
    damaged.run += name;
    std::filesystem::copy(options.run, damaged.run, std::filesystem::copy_options::recursive);
    damage(damaged.run);
    const CapturedLog log;
    train(damaged);
    expect_contains(log.text(), "cannot be used and is made again");
    EXPECT_EQ(model_of(damaged), expected);
    EXPECT_NO_THROW(load_model_directory(damaged.run));
  }
}

TEST(Contract13Run, TheModelOfAFinishedRunIsMadeAgain) {
  const TrainingFolder folder;
  for (const bool average : {false, true}) {
    TrainOptions options = folder.options(average ? "average" : "last");
    options.ema = 0.5;
    options.average_last = average ? 2 : 0;
    train(options);
    const std::string expected = model_of(options);
    for (const auto& [name, damage] : kDamages) {
      damage(options.run);
      const CapturedLog log;
      EXPECT_TRUE(train(options).already_finished);
      EXPECT_EQ(model_of(options), expected) << name << (average ? ", an average" : "");
    }
  }
}

TEST(Contract13Run, ALostBestModelGivesWayToTheLatest) {
  const TrainingFolder folder;
  TrainOptions options = folder.worsening("run");
  options.keep_last = 1;
  const int64_t best = train_until(options, 25).best_update;
  ASSERT_LT(best, 20);
  std::filesystem::remove(checkpoint_path(options.run, best));
  std::filesystem::remove(Path(options.run) / kWeightsFile);
  const CapturedLog log;
  train(options);
  expect_contains(log.text(), "the best model is lost, and the latest takes its place");
  EXPECT_NO_THROW(load_model_directory(options.run).weights.verify());
}

TEST(Contract13Run, AMisfitTokenizerIsRefused) {
  const TrainingFolder folder;
  TrainOptions options = folder.options("run");
  train_until(options, 12);
  std::filesystem::remove(Path(options.run) / kTokenizerFile);
  put(options.tokenizer, "no tokenizer");
  const CapturedLog log;
  expect_contains(message_of([&] { train(options); }), options.tokenizer);
}

// ------------------------------------------------------------------------------ 15: not finite

/// Blows up at once.
TrainOptions explosive(const TrainingFolder& folder, const std::string& run) {
  TrainOptions options = folder.options(run);
  options.learning_rate = 1e30;
  options.schedule = Schedule::kConstant;
  options.warmup = 0;
  options.max_bad_steps = 4;
  options.log_every = 1;
  return options;
}

TEST(Contract15, UpdatesThatAreNotFiniteAreSkippedCountedAndLoggedAndEndTheRun) {
  const TrainingFolder folder;
  TrainOptions options = explosive(folder, "run");
  options.checkpoint_every = {.updates = 1};
  std::vector<int64_t> skipped;
  TrainHooks hooks;
  hooks.on_update = [&](const TrainProgress& now) { skipped.push_back(now.skipped_updates); };
  const CapturedLog log;
  const std::string message = message_of([&] { train(options, hooks); });
  for (const char* part : {"4 updates in a row", "learning_rate", "warmup", "clip_norm",
                           "precision float32", "The checkpoint of update 4 is kept"}) {
    expect_contains(message, part);
  }
  EXPECT_EQ(skipped, (std::vector<int64_t>{0, 1, 2, 3}));
  expect_contains(log.text(), "update 2: the loss or the gradient is not finite; skipped");
  std::vector<int64_t> logged;
  for (const auto& event : events_of(options.run, "skipped")) logged.push_back(event.at("update"));
  EXPECT_EQ(logged, (std::vector<int64_t>{2, 3, 4, 5}));
  EXPECT_TRUE(events_of(options.run, "train").at(1).at("loss").is_null()) << "there was none";
  EXPECT_EQ(events_of(options.run, "error").at(0).at("message"), message);

  // The weights have stayed as they were before the first bad update.
  const SafetensorsFile first = SafetensorsFile::open(checkpoint_path(options.run, 2));
  const SafetensorsFile last = SafetensorsFile::open(checkpoint_path(options.run, 4));
  for (const std::string& name : first.names()) {
    EXPECT_EQ(first.read(name).to_vector(), last.read(name).to_vector()) << name;
  }
  // Resumed, it counts on from where it was, and ends in the same way.
  expect_contains(message_of([&] { train(options); }), "4 updates in a row");
}

TEST(Contract15, BeforeTheFirstCheckpointThatIsSaid) {
  const TrainingFolder folder;
  const TrainOptions options = explosive(folder, "run");
  const CapturedLog log;
  expect_contains(message_of([&] { train(options); }), "No checkpoint had been written yet");
}

TEST(Contract15, AValidationThatIsNotFiniteIsNeverTheBest) {
  const TrainingFolder folder;
  TrainOptions options = explosive(folder, "run");
  options.valid_source = options.train_source[0];
  options.valid_target = options.train_target[0];
  options.validation_metric = ValidationMetric::kLoss;
  options.validate_every = {.updates = 2};
  options.max_bad_steps = 100;
  options.stop_after = {.updates = 6};
  const CapturedLog log;
  const TrainResult result = train(options);
  EXPECT_FALSE(result.best_criterion.has_value());
  for (const auto& event : events_of(options.run, "validation")) {
    EXPECT_TRUE(event.at("loss").is_null());
    EXPECT_FALSE(event.at("best").get<bool>());
  }
}

// ------------------------------------------------------------------------------ 17: large files

TEST(Contract17, ALogOfMoreThanFourGigabytesGrows) {
  const TrainingFolder folder;
  TrainOptions options = folder.options("run");
  options.stop_after = {.updates = 5};
  std::filesystem::create_directory(options.run);
  const Path log = Path(options.run) / "log.jsonl";
  constexpr int64_t kLarge = int64_t{5} << 30;
  put(log, "");
  if (truncate(log.c_str(), kLarge) != 0) GTEST_SKIP() << "no sparse file of 5 GiB here";
  std::ofstream(log, std::ios::app) << "\n";
  train(options);
  EXPECT_GT(std::filesystem::file_size(log), static_cast<uintmax_t>(kLarge) + 100);
}

}  // namespace
}  // namespace attend
