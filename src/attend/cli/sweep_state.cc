#include "attend/cli/sweep_state.h"

#include "attend/cli/train_options.h"
#include "attend/cli/training.h"
#include "attend/train/run_folder.h"
#include "attend/train/schedule.h"

namespace attend {
namespace {

std::string list_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "; ") + line;
  return text;
}

void compare_limits(const TrainOptions& asked, const Assignments& recorded, SweepRowState& state) {
  TrainOptions before;
  OptionSet options;
  define_train_options(options, before);
  options.apply({recorded});
  if (before.stop_after == asked.stop_after) {
    state.is_done = before.patience == asked.patience || reached(state.run->done, asked.stop_after);
  } else if (reached(state.run->done, asked.stop_after)) {
    state.further = to_string(before.stop_after);
  }
}

}  // namespace

SweepRowState state_of_row(const SweepRow& row) {
  SweepRowState state{.run = state_of_run(row.train.run)};
  const Assignments recorded = recorded_options(row.train.run, row.options);
  if (recorded.empty() && !state.run) return state;
  state.other_options = list_of(contradictions_with(recorded, row.options));
  if (state.other_options.empty() && state.run && !state.run->finished.empty()) {
    compare_limits(row.train, recorded, state);
  }
  return state;
}

}  // namespace attend
