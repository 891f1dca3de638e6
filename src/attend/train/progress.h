#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "attend/train/options.h"

namespace attend {

/// How much has been trained, in every unit that a limit may be given in.
struct TrainingAmount {
  double epochs = 0;
  int64_t updates = 0;
  int64_t tokens = 0;  ///< target tokens, end of sentence counted
  double seconds = 0;  ///< of training, earlier parts of a resumed run included
};

/// What a validation found.
struct ValidationScores {
  double loss = 0;        ///< what training lowers: smoothed cross-entropy a target token, nats
  double perplexity = 0;  ///< exp of the mean -log p of a target token, without smoothing
  double accuracy = 0;    ///< share of target tokens with the highest score
  std::optional<double> bleu;
  std::optional<double> chrf;
  /// What the run chooses by: the loss or the perplexity negated, BLEU or chrF.
  double criterion(ValidationMetric metric) const;
};

/// Where a run is, for a status line. Loss, speed and norm are means since the last log line, or
/// since this part of the run began.
struct TrainProgress {
  TrainingAmount done;
  double share = 0;          ///< of stop_after, 0 to 1; 0 where there is no limit
  double seconds_left = -1;  ///< at this part's pace; negative: not known
  double loss = 0;           ///< smoothed cross-entropy, nats a token
  double perplexity = 0;     ///< exp of -log p a token
  std::optional<double> divergence = std::nullopt;  ///< of R-Drop's two passes, nats a token
  double tokens_per_second = 0;                     ///< target tokens
  double learning_rate = 0;
  double gradient_norm = 0;
  int64_t skipped_updates = 0;
  int64_t peak_resident_bytes = 0;  ///< the most memory that the process has held
};
/// "update 1200, epoch 3.41, loss 3.210, perplexity 9.80, 16500 tokens/s, learning rate 0.00071,
/// gradient norm 0.82, 310 MiB, 4m10s left"; with R-Drop its divergence after the perplexity
std::string to_string(const TrainProgress& progress);

}  // namespace attend
