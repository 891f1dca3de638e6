#pragma once

#include <string>
#include <vector>

#include "attend/cli/option_set.h"
#include "attend/cli/signals.h"
#include "attend/train/trainer.h"

namespace attend {

/// The options that the run in the folder `run` was started with; none where there is no run.
/// `options` are those of `attend train`.
Assignments recorded_options(const std::string& run, const OptionSet& options);

/// OptionSet::contradictions of `options` with what recorded_options() gave.
std::vector<std::string> contradictions_with(const Assignments& recorded, const OptionSet& options);

/// Throws UsageError where there are any, with a list of them.
void refuse_contradictions(const std::string& run, const OptionSet& options,
                           const Assignments& recorded);

/// Trains, or goes on, with progress on the terminal or in the log (contract 23), until it is done
/// or a signal comes. `options` hold `train`; they become the recipe of the run.
TrainResult run_training(const TrainOptions& train, const OptionSet& options,
                         const StopSignals& signals, Communicator* ranks = nullptr);

}  // namespace attend
