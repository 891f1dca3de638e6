#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "attend/data/corpus_progress.h"
#include "attend/train/options.h"
#include "attend/train/progress.h"

namespace attend {

class Communicator;  // comm/communicator.h

/// What a caller wants to see and to say while a run goes on.
struct TrainHooks {
  /// The ranks that train together, led by this one; null: it trains alone. See
  /// docs/distributed.md.
  Communicator* ranks = nullptr;
  /// Ten times a second while the training text is read, which the first start of a run does.
  std::function<void(const CorpusProgress&)> on_reading;
  /// After every update, with figures since the last log line.
  std::function<void(const TrainProgress&)> on_update;
  /// Every log_every updates.
  std::function<void(const TrainProgress&)> on_log;
  /// Set it to stop after the update in work, with a checkpoint; while the training text is read,
  /// with what is read kept.
  const std::atomic<bool>* stop = nullptr;
  /// The resolved options as YAML. Checkpoints hold them (recipe_of_checkpoints), and recipe.yaml
  /// in the run's folder, for people to read.
  std::string recipe;
  /// The options that change quality in one line, for train.log: the caller has shown it.
  std::string summary;
};

struct TrainResult {
  TrainingAmount done;
  std::string finished;           ///< why it ended; empty when it was stopped by the hook
  bool already_finished = false;  ///< there was nothing to do
  std::string go_on_with;         ///< the flags that make a finished run go on
  std::optional<ValidationScores> last_scores;
  std::optional<double> best_criterion;
  int64_t best_update = 0;
};

/// Trains a Transformer in the folder options.run, or goes on with the run that is there. The
/// folder's root holds the model to use (the best by validation, else the last), `checkpoints/`
/// what a resumed run needs, its options with it, `log.jsonl` and `train.log` what happened,
/// `recipe.yaml` the options.
///
/// A run killed at any moment and resumed ends with the same bits (contract 12). Throws UsageError
/// for options that contradict each other and Error for what goes wrong; work done until the last
/// checkpoint is never lost.
TrainResult train(const TrainOptions& options, const TrainHooks& hooks = {});

/// `--dry-run`: checks options, data, tokenizer, disk and memory by trying them, one update
/// included, without writing anything, and says what the run will need (contract 16).
std::string dry_run(const TrainOptions& options);

}  // namespace attend
