#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "attend/data/batches.h"
#include "attend/io/checkpoint.h"
#include "attend/train/engine.h"
#include "attend/train/schedule.h"

namespace attend {

/// Where a run is: everything but the weights and the optimizer's moments that a resumed run needs
/// to end with the same bits.
struct RunState {
  TrainingAmount done;
  DataPosition position;  ///< of the next batch
  int64_t pairs_in_epoch_done = 0;
  int64_t source_tokens = 0;
  int64_t skipped_updates = 0;
  int64_t bad_steps_in_row = 0;
  TrainingAmount last_validation;
  TrainingAmount last_checkpoint;
  std::optional<double> best_criterion;
  std::optional<double> best_loss;  ///< of that validation; unknown in older checkpoints
  int64_t best_update = 0;
  int64_t validations_without_improvement = 0;
  /// The updates of the last checkpoints that the run's schedule asked for, the newest last.
  std::vector<int64_t> scheduled;
  bool average_is_model = false;  ///< the root holds their average; only while the run is finished
  std::string finished;           ///< why the run ended; empty while it has not
  std::string precision;
  std::string data_fingerprint;
  /// Of the validation text, where there ever was any.
  std::string validation_fingerprint;
  std::string recipe;  ///< the options as TrainHooks::recipe gave them; empty in older checkpoints

  /// Adds a checkpoint to `scheduled`, of which the last `most` are kept.
  void note_scheduled(int64_t update, int64_t most);
  nlohmann::json to_json() const;
  /// Throws Error naming the file and what is missing.
  static RunState from_json(const nlohmann::json& json, const std::string& file_name);
};

/// Writes weights, moments, moving average and state as the checkpoint of this update. `metadata`,
/// that of model_metadata(), says which model it is of.
void save_run(const Path& run, const RunState& state, const Transformer& model, Engine& engine,
              const std::map<std::string, std::string>& metadata = {});
/// Fills model and engine from a checkpoint. Throws Error where it is of another model.
RunState restore_run(const Checkpoint& checkpoint, Transformer& model, Engine& engine);

}  // namespace attend
