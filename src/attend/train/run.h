#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "attend/train/run_log.h"
#include "attend/train/run_state.h"
#include "attend/train/trainer.h"
#include "attend/train/training_data.h"
#include "attend/train/validation.h"

namespace attend {

/// A run in its folder: what it reads, the model, and where it stands.
class Run {
 public:
  Run(const TrainOptions& options, const TrainHooks& hooks);
  TrainResult go();

 private:
  using Clock = std::chrono::steady_clock;

  TrainResult try_go();
  void prepare();
  void restore(const Checkpoint& checkpoint);
  void compare_validation_data() const;
  void repair_model();
  void start_fresh();
  void take_recipe();
  void update();
  void count(const std::vector<Batch>& batches, const UpdateStats& stats);
  void note_bad_update();
  TrainProgress progress() const;
  void log_if_due();
  void report_profile();
  void validate();
  void save_weights() const;
  void save_model();
  /// What checkpoint_every asks for counts among the last ones; what a signal or the best
  /// validation asks for does not, so that neither changes what comes after.
  void checkpoint(bool scheduled = true);
  void finish(const std::string& reason);
  void say_finished() const;
  std::vector<Path> checkpoints_to_average() const;
  void use_average_of_checkpoints();
  bool average_is_better(std::size_t count);
  bool is_better(const ValidationScores& scores) const;
  /// Better than the best so far, or as good with a lower loss.
  bool is_best(const ValidationScores& scores) const;
  /// Why the run must end here; empty where it goes on.
  std::string reason_to_finish() const;
  bool patience_is_over() const {
    return options_.patience > 0 && state_.validations_without_improvement >= options_.patience;
  }
  bool stop_asked() const { return hooks_.stop != nullptr && hooks_.stop->load(); }
  /// Runs `work` with other weights (a flat tensor) in the model.
  template <typename Work>
  void with_weights(const Tensor& flat, const Work& work);
  template <typename Work>
  void with_evaluation_weights(const Work& work);
  void update_clock() { state_.done.seconds = seconds_before_ + since(start_); }
  static double since(Clock::time_point from) {
    return std::chrono::duration<double>(Clock::now() - from).count();
  }

  TrainOptions options_;
  int64_t workers_asked_;  ///< 0: one a core, on each rank
  const TrainHooks& hooks_;
  Path run_;
  RunLock lock_;
  RunLog log_;
  TrainingData data_;
  std::shared_ptr<Transformer> model_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Validator> validator_;
  std::unique_ptr<BatchStream> stream_;
  RunState state_;
  bool resumed_ = false;
  TrainResult result_;
  double seconds_before_ = 0;
  double share_before_ = 0;  ///< of stop_after, by earlier parts
  Clock::time_point start_ = Clock::now();

  // Since the last log line.
  LossSums window_loss_;
  double window_norm_ = 0;
  int64_t window_updates_ = 0;
  Clock::time_point window_start_ = Clock::now();
  double learning_rate_ = 0;
};

template <typename Work>
void Run::with_weights(const Tensor& flat, const Work& work) {
  struct Swapped {
    Swapped(Engine& of, const Tensor& other) : engine(of), weights(other) {
      engine.swap_weights(weights);
    }
    ~Swapped() { engine.swap_weights(weights); }
    Engine& engine;
    const Tensor& weights;
  };
  const Swapped swapped(*engine_, flat);
  work();
}

template <typename Work>
void Run::with_evaluation_weights(const Work& work) {
  if (engine_->average().defined()) {
    with_weights(engine_->gather_average(), work);
  } else {
    work();
  }
}

}  // namespace attend
