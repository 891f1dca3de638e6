#include "attend/io/checkpoint.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <sstream>

#include "attend/base/log.h"
#include "attend/base/version.h"
#include "tests/io/support.h"

namespace attend {
namespace {

/// What is logged during its life.
class CapturedLog {
 public:
  CapturedLog() : before_(logger().sinks()) {
    logger().sinks() = {std::make_shared<spdlog::sinks::ostream_sink_st>(stream_)};
  }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;
  ~CapturedLog() { logger().sinks() = before_; }
  std::string text() const { return stream_.str(); }

 private:
  std::ostringstream stream_;
  std::vector<spdlog::sink_ptr> before_;
};

NamedTensors tensors_of(float value) {
  return {{std::string(kWeightsPrefix) + "w", Tensor::from({value, 2}, {2})},
          {std::string(kAdamMeanPrefix) + "w", Tensor::from({value, 3}, {2})}};
}

void save(const Path& run, int64_t step) {
  save_checkpoint(run, step, tensors_of(static_cast<float>(step)), {{"step", step}, {"best", 0.1}});
}

std::vector<int64_t> steps_of(const Path& run) {
  std::vector<int64_t> steps;
  for (const CheckpointFile& each : list_checkpoints(run)) steps.push_back(each.step);
  return steps;
}

using Steps = std::vector<int64_t>;

TEST(Checkpoint, GoesBothWays) {
  const TemporaryFolder run;
  EXPECT_FALSE(load_latest_checkpoint(run.path()).has_value());
  save(run.path(), 1234);
  EXPECT_TRUE(std::filesystem::exists(run / "checkpoints/step-00001234.safetensors"));
  const auto loaded = load_latest_checkpoint(run.path());
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(loaded->step, 1234);
  EXPECT_EQ(loaded->state, (nlohmann::json{{"step", 1234}, {"best", 0.1}}));
  EXPECT_EQ(loaded->file.read("weights/w").to_vector(), (std::vector<float>{1234, 2}));
  EXPECT_EQ(loaded->file.read("adam_m/w").to_vector(), (std::vector<float>{1234, 3}));
}

TEST(Checkpoint, ListedByStep) {
  const TemporaryFolder run;
  for (const int64_t step : Steps{5, 20, 100, 123'456'789'012}) save(run.path(), step);
  for (const char* other :
       {"step-7.safetensors", "step-00000008.safetensors.damaged", "step-.safetensors",
        "step--0000009.safetensors", "notes", ".step-00000009.safetensors.1-1.attend-tmp"}) {
    put(run / "checkpoints" / other, "x");
  }
  EXPECT_EQ(steps_of(run.path()), (Steps{5, 20, 100, 123'456'789'012}));
}

TEST(Checkpoint, Pruned) {
  const TemporaryFolder run;
  for (int64_t step = 1; step <= 6; ++step) save(run.path(), step);
  prune_checkpoints(run.path(), 2, {1, 3, 99});
  EXPECT_EQ(steps_of(run.path()), (Steps{1, 3, 5, 6}));
  prune_checkpoints(run.path(), 10);
  EXPECT_EQ(steps_of(run.path()), (Steps{1, 3, 5, 6}));
  prune_checkpoints(run.path(), 1);
  EXPECT_EQ(steps_of(run.path()), (Steps{6}));
}

TEST(Contract13, TruncatedCheckpointFallsBackToTheOneBefore) {
  const TemporaryFolder run;
  for (const int64_t step : {10, 20, 30}) save(run.path(), step);
  const Path newest = checkpoint_path(run.path(), 30);
  std::filesystem::resize_file(newest, std::filesystem::file_size(newest) - 3);
  const CapturedLog log;
  const auto loaded = load_latest_checkpoint(run.path());
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(loaded->step, 20);
  expect_contains(log.text(), "the checkpoint of step 30 cannot be used: " + newest.string());
  expect_contains(log.text(), "it was cut off");
}

TEST(Contract13, FlippedBitFallsBackToTheOneBefore) {
  const TemporaryFolder run;
  for (const int64_t step : {10, 20}) save(run.path(), step);
  const Path newest = checkpoint_path(run.path(), 20);
  std::string bytes = get(newest);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  put(newest, bytes);
  const CapturedLog log;
  EXPECT_EQ(load_latest_checkpoint(run.path())->step, 10);
  expect_contains(log.text(), "tensor \"weights/w\" has the checksum");
}

TEST(Contract13, NoReadableCheckpointIsAnError) {
  const TemporaryFolder run;
  for (const int64_t step : {10, 20}) {
    save(run.path(), step);
    put(checkpoint_path(run.path(), step), "");
  }
  const CapturedLog log;
  const std::string message = message_of([&] { load_latest_checkpoint(run.path()); });
  expect_contains(message, "none of the 2 checkpoints in " + (run / "checkpoints").string());
  expect_contains(message, checkpoint_path(run.path(), 20).string() +
                               " is no safetensors file: it has 0 bytes");
}

TEST(Contract13, ADamagedLaterCheckpointDoesNotOutliveGoodOnes) {
  const TemporaryFolder run;
  for (const int64_t step : {10, 30}) save(run.path(), step);
  put(checkpoint_path(run.path(), 30), "damaged");
  const CapturedLog log;
  EXPECT_EQ(load_latest_checkpoint(run.path())->step, 10);
  save(run.path(), 20);
  prune_checkpoints(run.path(), 1);
  EXPECT_EQ(steps_of(run.path()), Steps{20});
  EXPECT_EQ(get(run / "checkpoints/step-00000030.safetensors.damaged"), "damaged");
  EXPECT_EQ(load_latest_checkpoint(run.path())->step, 20);
}

TEST(Contract13, FullDiskKeepsTheLastCheckpoint) {
  SmallDisk disk("64k");
  if (!disk.mounted()) GTEST_SKIP() << disk.reason();
  save(disk.path(), 1);
  const NamedTensors large = {{"weights/w", Tensor::zeros({100, 1000}, DType::kFloat32)}};
  expect_contains(message_of([&] { save_checkpoint(disk.path(), 2, large, {}); }),
                  "cannot write " + checkpoint_path(disk.path(), 2).string() + ": No space left");
  EXPECT_EQ(entries_of(disk.path() / "checkpoints").size(), 1U);
  EXPECT_EQ(load_latest_checkpoint(disk.path())->step, 1);
}

TEST(Contract20, CheckpointOfANewerVersionIsNotSkipped) {
  const TemporaryFolder run;
  save(run.path(), 10);
  write_safetensors(checkpoint_path(run.path(), 20), tensors_of(1),
                    {{"checkpoint_format", "2"}, {"attend_version", "4.5.6"}, {"layout", "new"}});
  const std::string message = message_of([&] { load_latest_checkpoint(run.path()); });
  expect_contains(message, "written by attend \"4.5.6\" in format 2");
  expect_contains(message, fmt::format("this is attend {}", kVersion));
}

TEST(Contract19Checkpoint, StateIsChecked) {
  const TemporaryFolder run;
  const Path path = run / "file";
  const auto refused = [&](std::map<std::string, std::string> metadata) {
    metadata.emplace("checkpoint_format", "1");
    write_safetensors(path, tensors_of(1), metadata);
    return message_of([&] { load_checkpoint(path); });
  };
  expect_contains(refused({{"step", "1"}}), "is no checkpoint: its metadata has no state");
  expect_contains(refused({{"state", "{}"}}), "its metadata has no step");
  expect_contains(refused({{"step", "-1"}, {"state", "{}"}}), "step is \"-1\"; expected a whole");
  expect_contains(refused({{"step", "1x"}, {"state", "{}"}}), "step is \"1x\"");
  expect_contains(refused({{"step", "99999999999999999999"}, {"state", "{}"}}), "expected a whole");
  expect_contains(refused({{"step", "1"}, {"state", "{"}}), "the state is not valid JSON");
  expect_contains(refused({{"step", "1"}, {"state", std::string(1'000'000, '[')}}), "nests deeper");
  expect_contains(refused({{"step", "1"}, {"state", std::string(17 << 20, ' ')}}),
                  "at most 16777216");
  expect_contains(refused({{"checkpoint_format", "one"}}), "checkpoint_format is \"one\"");
}

TEST(Contract19Checkpoint, MutatedCheckpointsAreLoadedOrRefused) {
  const TemporaryFolder run;
  const Path path = checkpoint_path(run.path(), 1);
  save(run.path(), 1);
  const std::string valid = get(path);
  std::mt19937 random(29);
  int loaded = 0;
  for (int round = 0; round < 5000; ++round) {
    put(path, mutated(valid, random));
    try {
      load_checkpoint(path);
      ++loaded;
    } catch (const Error&) {
    }
  }
  EXPECT_LT(loaded, 2500);
}

}  // namespace
}  // namespace attend
