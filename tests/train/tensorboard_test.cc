#include "attend/train/run_history.h"

#include <atomic>
#include <cmath>

#include <gtest/gtest.h>

#include "tests/support/event_reader.h"
#include "tests/train/support.h"

namespace attend {
namespace {

using testing::EventReader;
using testing::ReadEvent;

TrainOptions logged(const TrainingFolder& folder, const std::string& run) {
  TrainOptions options = folder.validated(run);
  options.validation_metric = ValidationMetric::kBleu;
  options.log_every = 4;
  options.tensorboard = folder.file(run + ".events");
  return options;
}

RunHistory history_of(const TrainOptions& options) {
  LineReader reader(options.run + "/log.jsonl");
  return read_history([&](std::string& line) { return reader.next(line); });
}

/// The events with this name: their steps and values.
std::map<int64_t, float> series(const std::vector<ReadEvent>& events, const std::string& tag) {
  std::map<int64_t, float> found;
  for (const ReadEvent& event : events) {
    if (!event.scalars.contains(tag)) continue;
    EXPECT_TRUE(found.emplace(event.step, event.scalars.at(tag)).second)
        << tag << " twice at step " << event.step;
  }
  return found;
}

void expect_what_was_logged(const TrainOptions& options) {
  const RunHistory history = history_of(options);
  const auto events = EventReader::read_folder(options.tensorboard);
  std::map<int64_t, float> loss, rate, norm, speed, valid, bleu, chrf;
  for (const auto& [time, progress] : history.training) {
    const int64_t step = progress.done.updates;
    loss[step] = static_cast<float>(progress.loss);
    rate[step] = static_cast<float>(progress.learning_rate);
    norm[step] = static_cast<float>(progress.gradient_norm);
    speed[step] = static_cast<float>(progress.tokens_per_second);
  }
  for (const auto& each : history.validations) {
    valid[each.done.updates] = static_cast<float>(each.scores.loss);
    bleu[each.done.updates] = static_cast<float>(each.scores.bleu.value());
    chrf[each.done.updates] = static_cast<float>(each.scores.chrf.value());
  }
  EXPECT_FALSE(loss.empty());
  EXPECT_FALSE(valid.empty());
  EXPECT_EQ(series(events, "train/loss"), loss);
  EXPECT_EQ(series(events, "train/learning_rate"), rate);
  EXPECT_EQ(series(events, "train/gradient_norm"), norm);
  EXPECT_EQ(series(events, "train/tokens_per_second").size(), speed.size());
  EXPECT_EQ(series(events, "valid/loss"), valid);
  EXPECT_EQ(series(events, "valid/bleu"), bleu);
  EXPECT_EQ(series(events, "valid/chrf"), chrf);
  for (const ReadEvent& event : events) {
    EXPECT_NEAR(event.wall_time, history.last_time, 600) << "seconds since 1970";
  }
}

TEST(Tensorboard, HasWhatTheLogHas) {
  const TrainingFolder folder;
  const TrainOptions options = logged(folder, "run");
  train(options);
  expect_what_was_logged(options);
}

// The second part begins after the last checkpoint and repeats what came behind it.
TEST(Tensorboard, AResumedRunHasEachStepOnce) {
  const TrainingFolder folder;
  TrainOptions options = logged(folder, "run");
  options.stop_after = {.updates = 18};
  options.checkpoint_every = {.updates = 10};
  train(options);
  // As if it had been killed before its last checkpoint was written.
  std::filesystem::remove(list_checkpoints(options.run).back().path);
  const int64_t from = list_checkpoints(options.run).back().step;
  ASSERT_LT(from, 18);
  options.stop_after = {.updates = 30};
  train(options);
  const RunHistory history = history_of(options);
  EXPECT_EQ(history.resumes, 1);
  EXPECT_EQ(history.training.back().progress.done.updates, 28);
  expect_what_was_logged(options);
}

}  // namespace
}  // namespace attend
