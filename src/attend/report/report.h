#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attend/base/files.h"
#include "attend/metrics/bleu.h"
#include "attend/models/precision.h"

namespace attend {

/// An option of a run's recipe.
struct RecipeOption {
  std::string group;  ///< the heading that it stands under in help texts
  std::string name;
  std::string value;
  std::string usual;  ///< what it is by default, under the run's preset
  std::string help;   ///< empty for an option that this version does not know
};

/// A run to report on.
struct ReportedRun {
  Path folder;
  std::vector<RecipeOption> recipe;
  std::string recipe_problem;  ///< why there is no recipe; empty where there is one

  /// Empty where the recipe has no such option.
  std::string value_of(std::string_view option) const;
};

struct ReportOptions {
  std::string test_source;  ///< with test_target: a text to score all runs on
  std::string test_target;
  bool translate = true;  ///< translate: without it there are no scores, samples and attention
  int64_t samples = 12;   ///< sentences shown, of each of best, worst and random a third
  int64_t attention = 3;  ///< sentences among them whose attention is shown
  uint64_t seed = 1;      ///< of the random ones
  int64_t beam_size = 0;  ///< 0: what the run was validated with
  std::optional<double> length_penalty;  ///< unset: what the run was validated with
  BleuOptions bleu;
  int64_t workers = 0;  ///< 0: one a core
  InferencePrecision precision = InferencePrecision::kAuto;
  void validate() const;  ///< throws UsageError naming the option
};

/// One HTML page about the runs, which needs no other file and no network. Whatever a run's folder
/// lacks, the page says so. Throws Error where a folder is no run's, and for the test text.
std::string make_report(const std::vector<ReportedRun>& runs, const ReportOptions& options);

/// What to call runs: the last part of each one's folder, or as many of the last parts as tell it
/// from the others. None is absolute. Throws UsageError where a folder is given twice.
std::vector<std::string> names_of(const std::vector<Path>& folders);

/// Writes what a run has logged to event files for TensorBoard, as `attend train --tensorboard`
/// does while it trains. Throws Error.
void write_tensorboard(const Path& run, const Path& folder);

}  // namespace attend
