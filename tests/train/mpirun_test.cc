// Whole runs of the command under a real mpirun, all ranks on this machine. What the ranks compute
// is tested in ranks_test.cc, without MPI.
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "tests/support/numbers.h"
#include "tests/train/process.h"
#include "tests/train/support.h"

namespace attend {
namespace {

using std::chrono::steady_clock;

class Mpirun : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef ATTEND_SANITIZE
    GTEST_SKIP() << "MPI's own leaks would be reported";
#endif
    const Path module = Path(ATTEND_COMMAND).parent_path() / "attend_mpi.so";
    if (!std::filesystem::exists(module)) GTEST_SKIP() << "built without MPI: no " << module;
    if (std::system("mpirun --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no mpirun";
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  }

  TrainOptions options(const std::string& run) const {
    TrainOptions made = folder_.validated(run);
    made.ema = 0.9;
    made.stop_after = {.updates = 60};
    made.checkpoint_every = {.updates = 5};
    made.average_last = 2;
    made.log_every = 1;
    return made;
  }
  static std::vector<std::string> arguments(int ranks, const std::vector<std::string>& command) {
    std::vector<std::string> all = {"--oversubscribe", "-n", std::to_string(ranks), ATTEND_COMMAND};
    all.insert(all.end(), command.begin(), command.end());
    return all;
  }
  std::unique_ptr<Process> start(int ranks, const std::vector<std::string>& command) const {
    return std::make_unique<Process>(arguments(ranks, command), folder_.path(), "mpirun");
  }
  std::unique_ptr<Process> start(int ranks, const TrainOptions& options) const {
    return start(ranks, train_arguments(options));
  }
  void expect_done(int ranks, const TrainOptions& options) const {
    const auto process = start(ranks, options);
    EXPECT_EQ(process->wait(), 0) << process->err();
  }

  static void wait_for_update(const Process& process, const TrainOptions& options, int update) {
    const std::string line = fmt::format("\"update\":{},", update);
    ASSERT_TRUE(process.wait_until([&] {
      return get(Path(options.run) / "log.jsonl").find(line) != std::string::npos;
    })) << process.err();
  }

  /// The process that is this rank of the run.
  static std::optional<pid_t> find_rank(const TrainOptions& options, int rank) {
    const std::string wanted = fmt::format("OMPI_COMM_WORLD_RANK={}", rank) + '\0';
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string name = entry.path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      if (get(entry.path() / "cmdline").find(options.run + '\0') == std::string::npos) continue;
      if (get(entry.path() / "environ").find(wanted) != std::string::npos) return std::stoi(name);
    }
    return std::nullopt;
  }
  static void signal_rank(const TrainOptions& options, int rank, int signal) {
    const auto pid = find_rank(options, rank);
    ASSERT_TRUE(pid.has_value());
    kill(*pid, signal);
  }

  TrainingFolder folder_;
};

std::vector<float> weights_in(const TrainOptions& options) {
  const SafetensorsFile file = SafetensorsFile::open(list_checkpoints(options.run).back().path);
  std::vector<float> all;
  for (const std::string& name : file.names()) {
    if (!name.starts_with(kWeightsPrefix)) continue;
    const std::vector<float> values = file.read(name).to_vector();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST_F(Mpirun, TwoAndFourRanksTrainWhatOneTrains) {
  TrainOptions alone = options("alone");
  alone.adam_epsilon = 1e-4;  // nothing that is mere rounding is blown up
  alone.precision = Precision::kFloat32;
  alone.stop_after = {.updates = 20};
  std::vector<std::string> command;
  for (const int ranks : {1, 2, 4}) {
    TrainOptions together = alone;
    together.run = folder_.file(fmt::format("run-{}", ranks));
    command = train_arguments(together);
    command.insert(command.end(), {"--precision", "float32", "--adam-epsilon", "1e-4"});
    const auto process = start(ranks, command);
    ASSERT_EQ(process->wait(), 0) << process->err();
    EXPECT_EQ(count(process->err(), "finished: stop_after 20u"), 1) << process->err();
    if (ranks == 1) train(alone);
    EXPECT_LE(testing::relative_error(weights_in(together), weights_in(alone)),
              ranks == 1 ? 0 : 1e-4)
        << ranks << " ranks";
  }
}

TEST_F(Mpirun, KilledAtAnyMomentAndResumedOnAsManyRanksItEndsWithTheSameBits) {
  TrainOptions straight = options("straight");
  expect_done(2, straight);
  TrainOptions killed = options("killed");
  for (const int update : {3, 17, 41}) {
    const auto process = start(2, killed);
    wait_for_update(*process, killed, update);
    const auto other = find_rank(killed, 1);
    signal_rank(killed, 0, SIGKILL);
    EXPECT_NE(process->wait(), 0);
    // mpirun takes the others with it.
    for (int i = 0; i < 500 && other && kill(*other, 0) == 0; ++i) usleep(10000);
  }
  expect_done(2, killed);
  EXPECT_TRUE(model_of(killed) == model_of(straight)) << "the run ended with other bits";
  EXPECT_EQ(weights_in(killed), weights_in(straight));
}

TEST_F(Mpirun, ARankThatDiesEndsTheJobSoon) {
  TrainOptions run = options("run");
  run.stop_after = {.updates = 1000000};
  const auto process = start(3, run);
  wait_for_update(*process, run, 12);
  const auto before = steady_clock::now();
  signal_rank(run, 2, SIGKILL);
  EXPECT_NE(process->wait(), 0);
  EXPECT_LT(steady_clock::now() - before, std::chrono::seconds(30));
  expect_contains(process->err(), "process rank 2");
  expect_contains(process->err(), "signal 9");
  EXPECT_GE(load_latest_checkpoint(run.run)->step, 10);
}

TEST_F(Mpirun, ARankThatIsNotHeardOfEndsTheJobSoon) {
  TrainOptions run = options("run");
  run.stop_after = {.updates = 1000000};
  const auto process = start(2, run);
  wait_for_update(*process, run, 12);
  const auto before = steady_clock::now();
  // As where its machine is gone: no word from it, and none of mpirun.
  signal_rank(run, 1, SIGSTOP);
  EXPECT_EQ(process->wait(), 1);
  EXPECT_LT(steady_clock::now() - before, std::chrono::seconds(30));
  EXPECT_EQ(count(process->err(), "has not been heard of for 15 s"), 1) << process->err();
  ASSERT_FALSE(checkpoints_of(run).empty());
  EXPECT_GE(load_latest_checkpoint(run.run)->step, 10);
  const auto errors = events_of(run.run, "error");
  ASSERT_EQ(errors.size(), 1U);
  expect_contains(errors.front().at("message"), "rank 1 on ");
}

TEST_F(Mpirun, RankZeroAskedToStopWritesACheckpointAndEndsAll) {
  TrainOptions run = options("run");
  run.stop_after = {.updates = 1000000};
  const auto process = start(2, run);
  wait_for_update(*process, run, 7);
  signal_rank(run, 0, SIGTERM);
  EXPECT_EQ(process->wait(), 128 + SIGTERM);
  expect_contains(process->err(), "go on with: attend train --run");
  EXPECT_GE(checkpoints_of(run).back(), 7);
  EXPECT_EQ(events_of(run.run, "checkpoint").back().at("update"), checkpoints_of(run).back());
}

TEST_F(Mpirun, WhatIsWrongIsSaidOnceAndItsStatusIsKept) {
  const auto wrong_call = start(3, {"train", "--presett", "tiny"});
  EXPECT_EQ(wrong_call->wait(), 2);
  EXPECT_EQ(count(wrong_call->err(), "--presett"), 1) << wrong_call->err();

  TrainOptions run = options("run");
  run.train_source = {folder_.file("absent")};
  const auto failed = start(3, run);
  EXPECT_EQ(failed->wait(), 1);
  EXPECT_EQ(count(failed->err(), "error: "), 1) << failed->err();

  const auto help = start(2, {"train", "--help"});
  EXPECT_EQ(help->wait(), 0) << help->err();
  EXPECT_EQ(count(help->out(), "--stop-after"), 2) << "one page, which names it in an example, too";
}

TEST(PlainCommand, DoesNotLoadMpi) {
  if (std::system("strace -V >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no strace";
  const TemporaryFolder folder;
  const std::string trace = (folder / "trace").string();
  if (std::system(fmt::format("strace -f -e trace=openat -o {} {} train --help >/dev/null", trace,
                              ATTEND_COMMAND)
                      .c_str()) != 0) {
    GTEST_SKIP() << "strace does not work here";
  }
  const std::string opened = get(trace);
  expect_contains(opened, "libdnnl");
  EXPECT_EQ(opened.find("libmpi"), std::string::npos);
  EXPECT_EQ(opened.find("attend_mpi.so"), std::string::npos);
}

}  // namespace
}  // namespace attend
