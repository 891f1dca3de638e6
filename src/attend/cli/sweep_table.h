#pragma once

#include <string>
#include <vector>

#include "attend/base/files.h"
#include "attend/cli/sweep_score.h"

namespace attend {

/// What a sweep's table says of one row. Figures that there are none of are empty.
struct SweepFigures {
  std::string name;
  std::string differs;  ///< from the base: "heads 1, d_k 128"
  std::string weights;
  std::string perplexity;  ///< of the validation that chose the model, as is `bleu`
  std::string bleu;
  std::string test_bleu;
  std::string time;
  std::string tokens_per_second;
  std::string state;  ///< "after 400 updates", "diverged", "failed: ..."; empty where it is done
};

/// The state of a row with this problem, in one line.
std::string failed_text(std::string message);

/// Figures of the run in a folder: what its checkpoints, its log and recorded_test_bleu() say.
/// `state` is empty where the run has finished, and says so where its best model's perplexity is
/// not finite.
SweepFigures figures_of_run(const Path& run, const TestText& test);

/// The table with columns of equal width, for a terminal. A column that is empty in all rows is
/// left out.
std::string aligned_table(const std::vector<SweepFigures>& rows);
std::string markdown_table(const std::vector<SweepFigures>& rows);
std::string tsv_table(const std::vector<SweepFigures>& rows);

}  // namespace attend
