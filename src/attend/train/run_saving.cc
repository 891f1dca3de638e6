// What a run writes: the model in the folder's root, checkpoints, and the average at the end.
#include <algorithm>
#include <cmath>
#include <set>

#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/io/model_directory.h"
#include "attend/train/run.h"
#include "attend/train/run_folder.h"

namespace attend {

void Run::save_weights() const {
  save_model_directory(run_, options_.model, data_.tokenizers.source, data_.tokenizers.target,
                       model_->parameters().views(model_->parameters().flat_master()));
}

void Run::save_model() {
  with_evaluation_weights([&] { save_weights(); });
}

void Run::checkpoint(bool scheduled) {
  const auto before = Clock::now();
  const int64_t step = state_.done.updates;
  if (!state_.best_criterion && !state_.average_is_model) save_model();
  if (scheduled) {
    state_.last_checkpoint = state_.done;
    state_.note_scheduled(step, std::max(options_.keep_last, options_.average_last));
  }
  save_run(run_, state_, *model_, *engine_,
           model_metadata(options_.model, *data_.tokenizers.source, *data_.tokenizers.target));
  std::set<int64_t> keep(state_.scheduled.begin(), state_.scheduled.end());
  if (state_.best_update > 0) keep.insert(state_.best_update);
  prune_checkpoints(run_, 1, keep);
  log_.write("checkpoint", {{"update", step}});
  window_start_ += std::chrono::duration_cast<Clock::duration>(Clock::now() - before);
}

void Run::finish(const std::string& reason) {
  if (validator_ && state_.last_validation.updates < state_.done.updates) validate();
  if (options_.average_last > 0) {
    checkpoint();
    use_average_of_checkpoints();
  }
  state_.finished = reason;
  checkpoint();
  log_.write("finish", {{"update", state_.done.updates}, {"reason", reason}});
  say_finished();
}

void Run::say_finished() const {
  std::string best;
  if (state_.average_is_model) {
    best = "; the model is the average of its last checkpoints";
  } else if (state_.best_criterion) {
    best = fmt::format("; the best by {} is of update {}", name_of(options_.validation_metric),
                       state_.best_update);
  }
  logger().info("finished: {}, after {} updates and {:.2f} epochs{}", state_.finished,
                state_.done.updates, state_.done.epochs, best);
  logger().info("translate with it: attend translate --model {} < INPUT > OUTPUT", options_.run);
}

std::vector<Path> Run::checkpoints_to_average() const {
  const auto& all = state_.scheduled;
  const auto count = std::min<std::ptrdiff_t>(std::ssize(all), options_.average_last);
  std::vector<Path> paths;
  for (auto step = all.end() - count; step != all.end(); ++step) {
    paths.push_back(checkpoint_path(run_, *step));
  }
  return paths;
}

void Run::use_average_of_checkpoints() {
  const std::vector<Path> paths = checkpoints_to_average();
  with_weights(average_of_checkpoints(paths, model_->parameters()), [&] {
    state_.average_is_model = average_is_better(paths.size());
    if (state_.average_is_model) save_weights();
  });
}

/// With the average in the model. Without validation data the average is trusted.
bool Run::average_is_better(std::size_t count) {
  if (!validator_) {
    logger().info("the average of the last {} checkpoints becomes the model", count);
    return true;
  }
  const ValidationScores scores = validator_->run();
  const bool better = is_best(scores);
  log_.validation(state_.done, scores, better);
  logger().info("the average of the last {} checkpoints{} {}", count,
                scores.bleu ? fmt::format(" has BLEU {:.2f} and", *scores.bleu) : "",
                better ? "becomes the model" : "is no better than the best: not used");
  if (better) {
    state_.best_criterion = scores.criterion(options_.validation_metric);
    state_.best_loss = scores.loss;
  }
  return better;
}

/// Whatever happens to the model in the run's root, what it was is in the checkpoints.
void Run::repair_model() {
  if (holds_whole_model(run_, options_.model)) return;
  std::vector<Path> sources;
  if (state_.average_is_model) {
    sources = checkpoints_to_average();
  } else if (state_.best_criterion) {
    sources.push_back(checkpoint_path(run_, state_.best_update));
  }
  if (sources.empty()) return save_model();
  Tensor weights;
  try {
    weights = average_of_checkpoints(sources, model_->parameters());
  } catch (const Error& error) {
    logger().warn("the best model is lost, and the latest takes its place: {}", error.what());
    state_.best_criterion.reset();
    state_.best_update = 0;
    return save_model();
  }
  with_weights(weights, [&] { save_weights(); });
}

}  // namespace attend
