#include <algorithm>
#include <chrono>

#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/cli/command.h"
#include "attend/cli/config_file.h"
#include "attend/cli/output.h"
#include "attend/cli/ranks.h"
#include "attend/cli/signals.h"
#include "attend/cli/status_line.h"
#include "attend/cli/train_options.h"
#include "attend/io/checkpoint.h"
#include "attend/train/run_folder.h"
#include "attend/train/trainer.h"

namespace attend {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kMostRecipeBytes = int64_t{16} << 20;

class TrainCommand : public Command {
 public:
  std::string_view name() const override { return "train"; }
  std::string_view summary() const override {
    return "Train a translation model on parallel text, or go on with a run";
  }
  std::string_view details() const override {
    return "The folder of a run holds the model to use (the best by validation, else the last), "
           "checkpoints,\nthe options (recipe.yaml) and logs. A run that is there goes on with its "
           "own options; workers,\nlimits, logging and the names of files may be given anew. "
           "Ctrl-C and SIGTERM write a checkpoint\nand stop.\n"
           "Under mpirun all processes train one model together: see docs/distributed.md.\n\n"
           "Examples\n"
           "  attend train --train-source train.en --train-target train.de --valid-source val.en "
           "\\\n      --valid-target val.de --preset tiny --stop-after 30m --run runs/first\n"
           "  attend train --config recipes/multi30k-tiny.yaml --run runs/m30k\n"
           "  attend train --run runs/m30k";
  }

  void define(OptionSet& options) override { define_train_options(options, train_); }
  void resolve(const OptionSet& options, const Assignments& config,
               const Assignments& flags) override;
  void require() const override;
  bool works_in_ranks() const override { return true; }
  void lead(RankSession& ranks) override { ranks_ = &ranks; }
  void run(const OptionSet& options) override;

 private:
  /// The options that the run was started with; none where there is no run.
  Assignments recorded(const OptionSet& options) const;
  void refuse_contradictions(const OptionSet& options, const Assignments& recorded) const;

  TrainOptions train_;
  RankSession* ranks_ = nullptr;
};

/// Where the option that `message` begins with was set: "recipe.yaml:12: "; empty for a flag or a
/// default, which need no more than their name.
std::string place_of(std::string_view message, const std::vector<Assignments>& sources) {
  const std::string_view name =
      message.substr(0, message.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789"));
  const Assignment* last = nullptr;
  for (const Assignments& source : sources) {
    for (const Assignment& each : source) {
      if (each.name == name) last = &each;
    }
  }
  const std::string end = fmt::format(": {}", name);
  if (last == nullptr || !last->origin.ends_with(end)) return "";
  return last->origin.substr(0, last->origin.size() - name.size());
}

Assignments TrainCommand::recorded(const OptionSet& options) const {
  if (train_.run.empty()) return {};
  const std::string file = recipe_path(train_.run).string();
  const std::string kept = recipe_of_checkpoints(train_.run);
  if (kept.empty()) {
    std::error_code error;  // what cannot be asked for is told by what writes there
    if (!std::filesystem::exists(file, error)) return {};
    return parse_config(read_file(file, kMostRecipeBytes), file, options);
  }
  if (!holds_recipe(train_.run, kept)) {
    logger().warn(
        "{} was changed or damaged, and is ignored: the checkpoints of the run hold its options. "
        "What is to change is given as flags; the file is written anew",
        file);
  }
  return parse_config(kept, "the options in the checkpoints of " + train_.run, options);
}

void TrainCommand::refuse_contradictions(const OptionSet& options,
                                         const Assignments& recorded) const {
  TrainOptions before;
  OptionSet before_options;
  define_train_options(before_options, before);
  before_options.apply({recorded});
  const std::vector<std::string> contradictions = options.contradictions(before_options);
  if (contradictions.empty()) return;
  std::string list;
  for (const std::string& each : contradictions) list += "\n  " + each;
  fail_usage(
      "{} holds a run with other options; leave them out to go on with it, or start another with "
      "--run:{}",
      train_.run, list);
}

void TrainCommand::resolve(const OptionSet& options, const Assignments& config,
                           const Assignments& flags) {
  options.apply({config, flags});  // says which run it is
  const Assignments before = recorded(options);
  const std::string run = train_.run;
  if (!before.empty()) {
    // Presets and single fields of all sources are ordered anew, from the defaults on.
    train_ = TrainOptions();
    options.apply({before, config, flags});
    train_.run = run;
    const bool asks_dry_run = std::any_of(flags.begin(), flags.end(),
                                          [](const auto& each) { return each.name == "dry_run"; });
    if (!asks_dry_run) train_.dry_run = false;
    if (!list_checkpoints(run).empty()) refuse_contradictions(options, before);
  }
  try {
    train_.validate();
  } catch (const UsageError& error) {
    throw UsageError(place_of(error.what(), {before, config, flags}) + error.what());
  }
}

void TrainCommand::require() const {
  if (train_.run.empty() && !train_.dry_run) {
    fail_usage("--run DIR is missing: the folder of the run, new or to be gone on with");
  }
  if (train_.train_source.empty() && train_.train_tsv.empty()) {
    fail_usage(
        "there is no training data: give --train-source FILE and --train-target FILE, or "
        "--train-tsv FILE{}",
        train_.run.empty() ? "" : "; there is no run to go on with in " + train_.run);
  }
}

void TrainCommand::run(const OptionSet& options) {
  if (train_.dry_run) return print(dry_run(train_));

  const StopSignals signals;
  TrainHooks hooks;
  hooks.stop = &signals.stop();
  hooks.recipe = to_yaml(options);
  hooks.summary = options.quality_summary();
  if (ranks_ != nullptr) hooks.ranks = &ranks_->communicator();
  {
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
    train(train_, hooks);
  }
  if (ranks_ != nullptr) ranks_->end();
  signals.finish();
}

}  // namespace

std::unique_ptr<Command> make_train_command() { return std::make_unique<TrainCommand>(); }

}  // namespace attend
