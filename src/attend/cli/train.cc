#include <algorithm>

#include "attend/base/error.h"
#include "attend/cli/command.h"
#include "attend/cli/output.h"
#include "attend/cli/ranks.h"
#include "attend/cli/signals.h"
#include "attend/cli/train_options.h"
#include "attend/cli/training.h"
#include "attend/io/checkpoint.h"
#include "attend/train/trainer.h"

namespace attend {
namespace {

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

void TrainCommand::resolve(const OptionSet& options, const Assignments& config,
                           const Assignments& flags) {
  options.apply({config, flags});  // says which run it is
  const Assignments before = recorded_options(train_.run, options);
  const std::string run = train_.run;
  if (!before.empty()) {
    // Presets and single fields of all sources are ordered anew, from the defaults on.
    train_ = TrainOptions();
    options.apply({before, config, flags});
    train_.run = run;
    const bool asks_dry_run = std::any_of(flags.begin(), flags.end(),
                                          [](const auto& each) { return each.name == "dry_run"; });
    if (!asks_dry_run) train_.dry_run = false;
    if (!list_checkpoints(run).empty()) refuse_contradictions(run, options, before);
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
  run_training(train_, options, signals, ranks_ != nullptr ? &ranks_->communicator() : nullptr);
  if (ranks_ != nullptr) ranks_->end();
  signals.finish();
}

}  // namespace

std::unique_ptr<Command> make_train_command() { return std::make_unique<TrainCommand>(); }

}  // namespace attend
