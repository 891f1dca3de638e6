#pragma once

#include <string>
#include <vector>

#include "attend/base/files.h"

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
  std::string state;  ///< "done", "after 400 updates", "failed: ..."
};

/// Figures of the run in a folder: what its checkpoints, its log and test_bleu() say. `state` is
/// empty where the run is done.
SweepFigures figures_of_run(const Path& run);

/// The table with columns of equal width, for a terminal. A column that is empty in all rows is
/// left out.
std::string aligned_table(const std::vector<SweepFigures>& rows);
std::string markdown_table(const std::vector<SweepFigures>& rows);
std::string tsv_table(const std::vector<SweepFigures>& rows);

}  // namespace attend
