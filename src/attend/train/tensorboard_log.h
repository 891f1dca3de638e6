#pragma once

#include <cstdint>

#include "attend/io/event_file.h"
#include "attend/train/progress.h"

namespace attend {

/// A run's figures for TensorBoard: train/ loss, perplexity, learning_rate, gradient_norm and
/// tokens_per_second; valid/ loss, perplexity, accuracy, bleu and chrf. Steps are updates.
class TensorboardLog {
 public:
  /// Of a run, or a part of it, that begins after `updates` updates. See EventFile.
  TensorboardLog(const Path& folder, double time, int64_t updates)
      : file_(folder, time, updates + 1) {}

  /// time: seconds since 1970.
  void progress(double time, const TrainProgress& progress);
  void validation(double time, const TrainingAmount& done, const ValidationScores& scores);

  const EventFile& file() const { return file_; }

 private:
  EventFile file_;
};

}  // namespace attend
