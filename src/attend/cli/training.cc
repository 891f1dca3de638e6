#include "attend/cli/training.h"

#include <chrono>
#include <filesystem>

#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/cli/config_file.h"
#include "attend/cli/status_line.h"
#include "attend/cli/train_options.h"
#include "attend/train/run_folder.h"

namespace attend {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kMostRecipeBytes = int64_t{16} << 20;

}  // namespace

Assignments recorded_options(const std::string& run, const OptionSet& options) {
  if (run.empty()) return {};
  const std::string file = recipe_path(run).string();
  const std::string kept = recipe_of_checkpoints(run);
  if (kept.empty()) {
    std::error_code error;  // what cannot be asked for is told by what writes there
    if (!std::filesystem::exists(file, error)) return {};
    return parse_config(read_file(file, kMostRecipeBytes), file, options);
  }
  if (!holds_recipe(run, kept)) {
    logger().warn(
        "{} was changed or damaged, and is ignored: the checkpoints of the run hold its options. "
        "What is to change is given as flags; the file is written anew",
        file);
  }
  return parse_config(kept, "the options in the checkpoints of " + run, options);
}

std::vector<std::string> contradictions_with(const Assignments& recorded,
                                             const OptionSet& options) {
  TrainOptions before;
  OptionSet before_options;
  define_train_options(before_options, before);
  before_options.apply({recorded});
  return options.contradictions(before_options);
}

void refuse_contradictions(const std::string& run, const OptionSet& options,
                           const Assignments& recorded) {
  const std::vector<std::string> contradictions = contradictions_with(recorded, options);
  if (contradictions.empty()) return;
  std::string list;
  for (const std::string& each : contradictions) list += "\n  " + each;
  fail_usage(
      "{} holds a run with other options; leave them out to go on with it, or start another with "
      "--run:{}",
      run, list);
}

TrainResult run_training(const TrainOptions& train_options, const OptionSet& options,
                         const StopSignals& signals, Communicator* ranks) {
  TrainHooks hooks;
  hooks.stop = &signals.stop();
  hooks.recipe = to_yaml(options);
  hooks.summary = options.quality_summary();
  hooks.ranks = ranks;
  StatusLine status;
  auto drawn = Clock::time_point();
  hooks.on_update = [&](const TrainProgress& progress) {
    if (!status.is_drawn() || Clock::now() - drawn < std::chrono::milliseconds(100)) return;
    drawn = Clock::now();
    status.show(short_text(progress));
  };
  auto logged = Clock::now();
  hooks.on_reading = [&](const CorpusProgress& progress) {
    status.show(to_string(progress));
    if (Clock::now() - logged < std::chrono::seconds(30)) return;
    logged = Clock::now();
    status.log_only(to_string(progress));
  };
  hooks.on_log = [&](const TrainProgress& progress) { status.log_only(to_string(progress)); };
  return train(train_options, hooks);
}

}  // namespace attend
