#pragma once

#include <optional>
#include <string>

#include "attend/cli/sweep_file.h"
#include "attend/train/run_state.h"

namespace attend {

/// How the run in a row's folder stands to the row.
struct SweepRowState {
  std::optional<RunState> run;  ///< nothing where there is no checkpoint
  /// What the run's options have otherwise, which makes it none of this row: "heads: 1 in the run,
  /// 4 asked for". Empty where there is nothing.
  std::string other_options;
  std::string further;   ///< the stop_after of a run that went on further than the row asks for
  bool is_done = false;  ///< the run is as far as the row asks for
};

/// Reads checkpoints and recipes, and no weights. Throws Error where a recipe is damaged.
SweepRowState state_of_row(const SweepRow& row);

}  // namespace attend
