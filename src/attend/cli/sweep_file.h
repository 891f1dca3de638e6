#pragma once

#include <deque>
#include <string>
#include <vector>

#include "attend/cli/option_set.h"
#include "attend/train/options.h"

namespace attend {

/// What all rows of a sweep share, in the folder of their folders.
constexpr const char* kSweepTokenizers = "tokenizers";
constexpr const char* kSweepCache = "cache";
constexpr const char* kSweepTableMarkdown = "table.md";
constexpr const char* kSweepTableTsv = "table.tsv";

/// A row of a sweep: one training run.
struct SweepRow {
  std::string name;
  Assignments changes;  ///< what the file says of this row alone
  std::string differs;  ///< the same for people: "heads 1, d_k 128"
  TrainOptions train;   ///< all options together
  OptionSet options;    ///< over `train`
};

/// The rows that a file describes:
///
///     config: recipe.yaml    # where it is given: a recipe, beside this file
///     base:                  # options of all rows
///       stop_after: 2000u
///     rows:                  # a name each, and what is its own
///       base:
///       one-head: {heads: 1}
///
/// `given`, what flags say, goes over base and under the rows. Each row's run is the folder of its
/// name in `folder`, and its event files for TensorBoard go to one of its name in `tensorboard`.
/// Throws UsageError naming file, line and row for what is wrong with any of them.
std::deque<SweepRow> read_sweep_file(const std::string& path, const Assignments& given,
                                     const std::string& folder);

}  // namespace attend
