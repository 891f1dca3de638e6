#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "attend/data/text.h"
#include "attend/train/progress.h"

namespace attend {

/// What `log.jsonl` says of a run, as RunLog wrote it. Figures that are missing are NaN.
struct RunHistory {
  struct Training {
    double time = 0;  ///< seconds since 1970
    TrainProgress progress;
  };
  struct Validation {
    double time = 0;
    TrainingAmount done;
    ValidationScores scores;
    bool best = false;  ///< of the run, so far
  };

  std::vector<Training> training;  ///< updates ascend
  /// Updates ascend. The average of checkpoints is validated after the same update as the last of
  /// them: the one of the two whose model the run keeps is here, or the first if it keeps neither.
  std::vector<Validation> validations;
  int64_t pairs = 0;                    ///< of training; 0: not known
  int64_t weights = 0;                  ///< of the model; 0: not known
  std::map<std::string, int64_t> data;  ///< pairs read, kept and left out, by reason
  int64_t resumes = 0;
  int64_t skipped_updates = 0;
  int64_t unreadable_lines = 0;  ///< save a last one that is cut off, as a killed process leaves it
  double started = 0;            ///< seconds since 1970; 0: not known
  double last_time = 0;          ///< of the last line
  std::string finished;          ///< why the run ended; empty while it has not
  std::string error;             ///< what stopped it last; empty where it went on

  /// Of all that was logged; nothing where that is nothing.
  TrainingAmount done() const;
  /// The one whose model the run keeps; null where there is none.
  const Validation* best_validation() const;
};

/// Reads a log. Where a run was killed and went on from a checkpoint, updates after that are logged
/// again, and the last word counts. What other versions may write besides is passed over.
RunHistory read_history(const NextLine& next_line);

}  // namespace attend
