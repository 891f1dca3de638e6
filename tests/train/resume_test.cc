// Contract 12: killed at any moment and resumed, a run ends with the same bits.
#include <sys/syscall.h>

#include <gtest/gtest.h>

#include <random>

#include "tests/train/process.h"
#include "tests/train/support.h"

namespace {

int renames_before_death = 0;  // 0: lives on

}  // namespace

/// In place of the library's, for all that this program does: files are put in their places by
/// rename(2), so that dying before each of them is dying at every stage of what a run writes.
extern "C" int rename(const char* from, const char* to) noexcept {
  if (renames_before_death > 0 && --renames_before_death == 0) kill(getpid(), SIGKILL);
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

namespace attend {
namespace {

/// Everything that a run's state holds: two corpora with weights, accumulation, a moving average,
/// validation, the average of checkpoints; and everything that is drawn at random.
TrainOptions rich(const TrainingFolder& folder, const std::string& run) {
  const std::string extra = sentences(60, 7);
  put(folder.file("extra.a"), extra);
  put(folder.file("extra.b"), in_capitals(extra));
  TrainOptions options = folder.validated(run);
  options.train_source.push_back(folder.file("extra.a"));
  options.train_target.push_back(folder.file("extra.b"));
  options.corpus_weights = {1.0, 0.7};
  options.source_bpe_dropout = 0.1;
  options.target_bpe_dropout = 0.2;
  options.accumulate = 2;
  options.ema = 0.9;
  options.regularization = {
      .r_drop = 2, .layer_drop = 0.3F, .source_word_dropout = 0.1F, .target_word_dropout = 0.1F};
  options.stop_after = {.updates = 22};
  options.checkpoint_every = {.updates = 4};
  options.keep_last = 3;
  options.average_last = 2;
  return options;
}

/// Ends early, after a validation that a checkpoint follows.
TrainOptions impatient(const TrainingFolder& folder, const std::string& run) {
  TrainOptions options = folder.worsening(run);
  options.checkpoint_every = options.validate_every;
  options.patience = 2;
  return options;
}

/// The same without validation data: the average is the model whatever it is worth.
TrainOptions averaged(const TrainingFolder& folder, const std::string& run) {
  TrainOptions options = rich(folder, run);
  options.valid_source.clear();
  options.valid_target.clear();
  return options;
}

/// All that a run ends with: the model, and the step, weights and moments of the last checkpoint.
std::string end_of(const TrainOptions& options) {
  const CheckpointFile last = list_checkpoints(options.run).back();
  std::string all = model_of(options) + fmt::format("step {}", last.step);
  const SafetensorsFile file = SafetensorsFile::open(last.path);
  for (const std::string& name : file.names()) {
    const std::vector<float> values = file.read(name).to_vector();
    all.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  }
  return all;
}

std::string straight_end(TrainOptions options) {
  options.run += "-straight";
  EXPECT_FALSE(train(options).finished.empty());
  return end_of(options);
}

/// EXPECT_EQ would print megabytes.
void expect_ends_with(const std::string& expected, const TrainOptions& options,
                      const std::string& what) {
  EXPECT_TRUE(end_of(options) == expected) << what << ": the run ended with other bits";
}

TEST(Contract12, WorkersDoNotChangeTheModel) {
  const TrainingFolder folder;
  TrainOptions options = rich(folder, "two");
  const std::string expected = straight_end(options);
  options.workers = 2;
  train(options);
  expect_ends_with(expected, options, "two workers");
}

using MakeOptions = TrainOptions (*)(const TrainingFolder&, const std::string&);

void expect_survives_stops(MakeOptions make) {
  const TrainingFolder folder;
  const std::string expected = straight_end(make(folder, "run"));
  for (const int64_t stop : {1, 4, 6, 11, 12, 21, 22}) {
    TrainOptions options = make(folder, fmt::format("run-{}", stop));
    const TrainResult stopped = train_until(options, stop);
    EXPECT_EQ(stopped.done.updates, stop);
    EXPECT_EQ(stopped.finished.empty(), stop < 22);
    EXPECT_EQ(checkpoints_of(options).back(), stop);
    options.workers = 2;
    const CapturedLog log;
    EXPECT_EQ(train(options).done.updates, 22);
    expect_contains(log.text(), fmt::format("after update {}", stop));
    expect_ends_with(expected, options, fmt::format("stopped after {}", stop));
  }
}

TEST(Contract12, StoppedByASignalAtAnyUpdateAndResumed) { expect_survives_stops(rich); }
TEST(Contract12, AStopDoesNotChangeWhatIsAveraged) { expect_survives_stops(averaged); }

TEST(Contract12, StoppedBeforeTheFirstUpdate) {
  const TrainingFolder folder;
  TrainOptions options = rich(folder, "run");
  options.cache = folder.file("cache");
  const std::string expected = straight_end(options);  // which leaves no text to be stopped at
  const std::atomic<bool> stop = true;
  TrainHooks hooks;
  hooks.stop = &stop;
  EXPECT_EQ(train(options, hooks).done.updates, 0);
  EXPECT_EQ(checkpoints_of(options), std::vector<int64_t>{0});
  train(options);
  expect_ends_with(expected, options, "stopped at once");
}

TEST(Contract12, StoppedWhileTheTokenizersTextIsRead) {
  const TrainingFolder folder;
  TrainOptions options = folder.options("run");
  options.tokenizer.clear();
  options.vocabulary_size = 320;
  const std::atomic<bool> stop = true;
  TrainHooks hooks;
  hooks.stop = &stop;
  const CapturedLog log;
  const TrainResult result = train(options, hooks);
  EXPECT_TRUE(result.finished.empty());
  EXPECT_EQ(result.done.updates, 0);
  expect_contains(log.text(), "stopped while the text for the tokenizer was read");
}

TEST(Contract12, StoppedAgainAndAgain) {
  const TrainingFolder folder;
  TrainOptions options = averaged(folder, "run");
  const std::string expected = straight_end(options);
  for (const int64_t stop : {2, 3, 7, 9, 10, 17, 18}) {
    options.workers = 1 + stop % 2;
    train_until(options, stop);
  }
  train(options);
  expect_ends_with(expected, options, "stopped seven times");
}

TEST(Contract12, KilledAtAnyUpdateAndResumed) {
  const TrainingFolder folder;
  const TrainOptions options = rich(folder, "run");
  // Whatever lies on the disk after an update is what a kill at that moment leaves.
  TrainHooks hooks;
  hooks.on_update = [&](const TrainProgress& progress) {
    std::filesystem::copy(options.run, options.run + fmt::format("-{}", progress.done.updates),
                          std::filesystem::copy_options::recursive);
  };
  train(options, hooks);
  for (const int64_t killed : {1, 4, 5, 6, 9, 12, 16, 17, 22}) {
    TrainOptions resumed = options;
    resumed.run += fmt::format("-{}", killed);
    train(resumed);
    expect_ends_with(end_of(options), resumed, fmt::format("killed after {}", killed));
  }
}

TEST(Contract12, KilledBeforeTheFirstCheckpointStartsAgain) {
  const TrainingFolder folder;
  TrainOptions options = rich(folder, "run");
  options.tokenizer.clear();  // it is trained again, too
  options.vocabulary_size = 320;
  const std::string expected = straight_end(options);
  TrainHooks hooks;
  hooks.on_update = [&](const TrainProgress&) { throw std::runtime_error("killed"); };
  EXPECT_THROW(train(options, hooks), std::runtime_error);
  EXPECT_TRUE(checkpoints_of(options).empty());
  EXPECT_EQ(train(options).done.updates, 22);
  expect_ends_with(expected, options, "started again");
  EXPECT_EQ(events_of(options.run, "start").size(), 2U);
}

/// Kills a run before each file that it puts in its place, and resumes it.
void expect_survives_death_at_every_file(const TrainOptions& options) {
  const std::string expected = straight_end(options);
  bool killed = true;
#ifdef ATTEND_SANITIZE
  constexpr int kStep = 4;
#else
  constexpr int kStep = 1;
#endif
  int deaths = 0;
  for (int renames = 1; killed; renames += kStep) {
    TrainOptions each = options;
    each.run += fmt::format("-{}", renames);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      logger().sinks().clear();
      renames_before_death = renames;
      train(each);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    killed = WIFSIGNALED(status);
    ASSERT_TRUE(killed ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0) << status;
    deaths += killed ? 1 : 0;
    const TrainResult result = train(each);
    EXPECT_FALSE(result.finished.empty());
    expect_ends_with(expected, each, fmt::format("killed before file {}", renames));
    std::filesystem::remove_all(each.run);
  }
  EXPECT_GE(deaths * kStep, 6);
}

TEST(Contract12, KilledBeforeEachFileThatIsWritten) {
  const TrainingFolder folder;
  TrainOptions options = rich(folder, "run");
  options.stop_after = {.updates = 14};
  expect_survives_death_at_every_file(options);
}

TEST(Contract12, KilledWhileAnEarlyStopIsWritten) {
  const TrainingFolder folder;
  const TrainOptions options = impatient(folder, "run");
  TrainOptions straight = options;
  straight.run += "-first";
  const TrainResult result = train(straight);
  ASSERT_EQ(result.finished, "no improvement in 2 validations");
  ASSERT_LT(result.done.updates, 30);
  expect_survives_death_at_every_file(options);
}

/// Runs the command, kills it at random moments, and runs it again until it ends by itself. Says
/// how often it was killed.
int kill_at_random(const TrainingFolder& folder, const TrainOptions& options,
                   std::mt19937& random) {
  const std::vector<std::string> arguments = train_arguments(options);
  int kills = 0, attempts = 0, status = -1;
  int64_t longest_ms = 50;
  while (status != 0 && ++attempts < 100) {
    Process process(arguments, folder.path());
    const auto start = std::chrono::steady_clock::now();
    const auto delay = std::chrono::milliseconds(random() % static_cast<uint64_t>(longest_ms));
    // From the eighth kill on it may live until something is done.
    const bool alive = process.wait_until(
        [&] { return kills < 8 && std::chrono::steady_clock::now() - start > delay; });
    if (alive) {
      process.signal(SIGKILL);
      ++kills;
      longest_ms += longest_ms / 2;
    }
    status = process.wait();
    if (status != 0 && !(alive && status == 128 + SIGKILL)) {
      ADD_FAILURE() << status << ": " << process.err();
      return kills;
    }
  }
  EXPECT_EQ(status, 0);
  return kills;
}

TEST(Contract12, TheCommandKilledAtRandomMoments) {
  const TrainingFolder folder;
  TrainOptions options = rich(folder, "run");
  options.stop_after = {.updates = 60};
  const std::string expected = straight_end(options);
  options.workers = 2;

  // A fast machine ends a run before it can be killed often: then another one is killed.
  std::mt19937 random(std::random_device{}());
  int kills = 0;
  for (int run = 0; kills < 3 && run < 20 && !HasFailure(); ++run) {
    options.run = folder.path() / fmt::format("run-{}", run);
    kills += kill_at_random(folder, options, random);
    expect_ends_with(expected, options, fmt::format("{} kills", kills));
    events_of(options.run);  // all are whole
  }
  EXPECT_GE(kills, 3);
}

/// A run of the command, stopped by a signal while it trains.
void expect_stops_well(int signal_number) {
  const TrainingFolder folder;
  TrainOptions options = folder.options("run");
  options.ema = 0.9;
  options.stop_after = {.updates = 1000000};
  options.log_every = 1;
  Process process(train_arguments(options), folder.path());
  ASSERT_TRUE(process.wait_until([&] {
    return get(Path(options.run) / "log.jsonl").find("\"update\":3,") != std::string::npos;
  })) << process.err();
  // As `timeout` does: its child, then its group with the child in it.
  process.signal(signal_number);
  process.signal(signal_number);
  EXPECT_EQ(process.wait(), 128 + signal_number) << "as if the signal had ended it";
  ASSERT_FALSE(checkpoints_of(options).empty()) << process.err();
  const int64_t stopped = checkpoints_of(options).back();
  EXPECT_GE(stopped, 3);
  expect_contains(process.err(), "a checkpoint is written first");
  expect_contains(process.err(), fmt::format("stopped after update {}; go on with: attend train "
                                             "--run {}",
                                             stopped, options.run));

  const std::string limit = fmt::format("{}u", stopped + 5);
  const Finished resumed =
      run_attend_command({"train", "--run", options.run, "--stop-after", limit});
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  expect_contains(resumed.err, fmt::format("resuming {} after update {}", options.run, stopped));
  options.stop_after = {.updates = stopped + 5};
  expect_ends_with(straight_end(options), options, "resumed");
  // What it was last asked for is what it goes on with.
  const Finished again = run_attend_command({"train", "--run", options.run});
  EXPECT_EQ(again.status, 0);
  expect_contains(again.err, "is finished: stop_after " + to_string(options.stop_after));
}

TEST(Contract12, TermWritesACheckpointFirst) { expect_stops_well(SIGTERM); }
TEST(Contract12, InterruptWritesACheckpointFirst) { expect_stops_well(SIGINT); }

}  // namespace
}  // namespace attend
