#include "attend/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/io/average.h"
#include "attend/io/model_directory.h"
#include "attend/search/load_model.h"
#include "attend/train/bench.h"
#include "attend/train/run_log.h"
#include "attend/train/training_data.h"
#include "attend/train/validation.h"

namespace attend {
namespace {

using Clock = std::chrono::steady_clock;

/// A run in its folder: what it reads, the model, and where it stands.
class Run {
 public:
  Run(const TrainOptions& options, const TrainHooks& hooks);
  TrainResult go();

 private:
  void prepare();
  void restore(const Checkpoint& checkpoint);
  void start_fresh();
  void update();
  void count(const std::vector<Batch>& batches, const UpdateStats& stats);
  void note_bad_update();
  TrainProgress progress() const;
  void log_if_due();
  void validate();
  void save_model(const char* what);
  void checkpoint();
  void finish(const std::string& reason);
  void use_average_of_checkpoints();
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
  TrainResult result_;
  double seconds_before_ = 0;
  Clock::time_point start_ = Clock::now();

  // Since the last log line.
  LossSums window_loss_;
  double window_norm_ = 0;
  int64_t window_updates_ = 0;
  Clock::time_point window_start_ = Clock::now();
  double learning_rate_ = 0;
};

Run::Run(const TrainOptions& options, const TrainHooks& hooks)
    : options_(options), hooks_(hooks), run_(options.run), lock_(run_), log_(run_) {
  options_.workers = resolve_workers(options.workers);
}

template <typename Work>
void Run::with_weights(const Tensor& flat, const Work& work) {
  model_->parameters().swap_master(flat);
  work();
  model_->parameters().swap_master(flat);
}

template <typename Work>
void Run::with_evaluation_weights(const Work& work) {
  if (engine_->average().defined()) {
    with_weights(engine_->average(), work);
  } else {
    work();
  }
}

void Run::prepare() {
  std::optional<Checkpoint> latest = load_latest_checkpoint(run_);
  Tokenizers tokenizers;
  DType compute = resolve_precision(options_.precision);
  if (latest) {
    const ModelFiles files = load_model_directory(run_);
    tokenizers = {files.source_tokenizer, files.target_tokenizer};
    const auto recorded =
        RunState::from_json(latest->state, latest->file.path().string()).precision;
    if (options_.precision == Precision::kAuto) {
      compute = recorded == name_of(DType::kBFloat16) ? DType::kBFloat16 : DType::kFloat32;
    }
  } else {
    tokenizers = make_tokenizers(options_);
  }
  options_.model.source_vocabulary_size = tokenizers.source->vocabulary_size();
  options_.model.target_vocabulary_size = tokenizers.target->vocabulary_size();
  data_ = load_training_data(options_, std::move(tokenizers));
  model_ = std::make_shared<Transformer>(options_.model, compute, true);
  logger().info("model: {} weights, {} + {} layers, d_model {}, d_ff {}, {} heads, {}",
                model_->parameters().weight_count(), options_.model.encoder_layers,
                options_.model.decoder_layers, options_.model.d_model, options_.model.d_ff,
                options_.model.heads, name_of(compute));
  engine_ = std::make_unique<Engine>(*model_, options_, options_.workers);
  if (data_.valid) {
    validator_ = std::make_unique<Validator>(options_, data_, model_, *engine_);
  }
  if (latest) {
    restore(*latest);
  } else {
    start_fresh();
  }
  if (!hooks_.recipe.empty()) write_file(run_ / "recipe.yaml", hooks_.recipe);
  state_.precision = name_of(compute);
  state_.data_fingerprint = data_.train->fingerprint();
  stream_ = std::make_unique<BatchStream>(*data_.train, batch_options(options_), state_.position);
}

void Run::restore(const Checkpoint& checkpoint) {
  state_ = restore_run(checkpoint, *model_, *engine_);
  seconds_before_ = state_.done.seconds;
  if (state_.data_fingerprint != data_.train->fingerprint()) {
    fail_usage(
        "the training data is not what run {} was started with: files or tokenizer have "
        "changed; give it the same data, or start another run with --run",
        options_.run);
  }
  logger().info("resuming {} after update {}", options_.run, state_.done.updates);
  log_.write("resume", {{"update", state_.done.updates}});
}

void Run::start_fresh() {
  model_->initialize(options_.seed);
  engine_->reset_average();
  log_.write("start", {{"pairs", data_.train->pairs()},
                       {"data", data_.train->report().to_json()},
                       {"weights", model_->parameters().weight_count()}});
}

TrainResult Run::go() {
  prepare();
  if (reached(state_.done, options_.stop_after) && !state_.finished.empty()) {
    result_.already_finished = true;
  } else if (state_.finished.starts_with("no improvement") &&
             state_.validations_without_improvement >= options_.patience && options_.patience > 0) {
    result_.already_finished = true;
  }
  if (result_.already_finished) {
    result_.finished = state_.finished;
    result_.done = state_.done;
    return result_;
  }
  state_.finished.clear();
  start_ = window_start_ = Clock::now();
  std::string reason;
  while (true) {
    update_clock();
    if (reached(state_.done, options_.stop_after)) {
      reason = fmt::format("stop_after {} reached", to_string(options_.stop_after));
      break;
    }
    if (stop_asked()) break;
    update();
    log_if_due();
    if (validator_ && due(state_.done, state_.last_validation, options_.validate_every)) {
      validate();
    } else if (due(state_.done, state_.last_checkpoint, options_.checkpoint_every)) {
      checkpoint();
    }
    if (options_.patience > 0 && state_.validations_without_improvement >= options_.patience) {
      reason =
          fmt::format("no improvement in {} validations", state_.validations_without_improvement);
      break;
    }
  }
  if (reason.empty()) {
    checkpoint();
    logger().info("stopped after update {}; go on with: attend train --run {}", state_.done.updates,
                  options_.run);
  } else {
    finish(reason);
  }
  result_.done = state_.done;
  result_.finished = state_.finished;
  result_.best_criterion = state_.best_criterion;
  result_.best_update = state_.best_update;
  return result_;
}

void Run::update() {
  std::vector<Batch> batches;
  for (int64_t i = 0; i < options_.accumulate; ++i) batches.push_back(stream_->next());
  const int64_t step = state_.done.updates + 1;
  learning_rate_ = learning_rate(options_, step, progress_of(state_.done, options_.stop_after));
  const UpdateStats stats = engine_->update(batches, step, learning_rate_);
  count(batches, stats);
  if (stats.skipped) note_bad_update();
  if (hooks_.on_update) hooks_.on_update(progress());
}

void Run::count(const std::vector<Batch>& batches, const UpdateStats& stats) {
  for (const Batch& batch : batches) {
    state_.done.tokens += batch.target_tokens;
    state_.source_tokens += batch.source_tokens;
    state_.pairs_in_epoch_done = batch.last_of_epoch ? 0 : state_.pairs_in_epoch_done + batch.pairs;
  }
  state_.position = stream_->position();
  ++state_.done.updates;
  const auto epoch_pairs = static_cast<double>(stream_->pairs_in_epoch(state_.position.epoch));
  state_.done.epochs = static_cast<double>(state_.position.epoch) +
                       static_cast<double>(state_.pairs_in_epoch_done) / epoch_pairs;
  update_clock();
  ++window_updates_;
  if (stats.skipped) return;
  state_.bad_steps_in_row = 0;
  window_loss_ += stats.loss;
  window_norm_ += stats.gradient_norm;
}

void Run::note_bad_update() {
  ++state_.skipped_updates;
  ++state_.bad_steps_in_row;
  log_.write("skipped", {{"update", state_.done.updates}});
  logger().warn("update {}: the loss or the gradient is not finite; skipped", state_.done.updates);
  if (state_.bad_steps_in_row < options_.max_bad_steps) return;
  fail(
      "{} updates in a row had a loss or gradient that is not finite; the weights before them are "
      "in the last checkpoint. Try a lower learning_rate, a longer warmup, clip_norm 1, or "
      "precision float32",
      state_.bad_steps_in_row);
}

TrainProgress Run::progress() const {
  TrainProgress now{.done = state_.done,
                    .share = std::min(1.0, progress_of(state_.done, options_.stop_after)),
                    .learning_rate = learning_rate_,
                    .skipped_updates = state_.skipped_updates};
  const auto tokens = static_cast<double>(std::max<int64_t>(window_loss_.tokens, 1));
  now.loss = window_loss_.loss / tokens;
  now.perplexity = std::exp(window_loss_.nll / tokens);
  now.tokens_per_second = static_cast<double>(window_loss_.tokens) / since(window_start_);
  now.gradient_norm = window_norm_ / static_cast<double>(std::max<int64_t>(window_updates_, 1));
  if (now.share > 0) now.seconds_left = state_.done.seconds * (1 - now.share) / now.share;
  return now;
}

void Run::log_if_due() {
  if (state_.done.updates % options_.log_every != 0) return;
  log_.progress(progress());
  if (hooks_.on_log) hooks_.on_log(progress());
  window_loss_ = {};
  window_norm_ = 0;
  window_updates_ = 0;
  window_start_ = Clock::now();
}

void Run::validate() {
  const auto before = Clock::now();
  ValidationScores scores;
  with_evaluation_weights([&] { scores = validator_->run(); });
  const double criterion = scores.criterion(options_.validation_metric);
  const bool best = !state_.best_criterion || criterion > *state_.best_criterion;
  update_clock();
  log_.validation(state_.done, scores, best);
  logger().info("validation after update {}: perplexity {:.2f}, accuracy {:.1f}%{}{}{} ({:.1f} s)",
                state_.done.updates, scores.perplexity, 100 * scores.accuracy,
                scores.bleu ? fmt::format(", BLEU {:.2f}", *scores.bleu) : "",
                scores.chrf ? fmt::format(", chrF2 {:.2f}", *scores.chrf) : "",
                best ? ", the best so far" : "", since(before));
  state_.last_validation = state_.done;
  result_.last_scores = scores;
  window_start_ += std::chrono::duration_cast<Clock::duration>(Clock::now() - before);
  if (best) {
    state_.best_criterion = criterion;
    state_.best_update = state_.done.updates;
    state_.validations_without_improvement = 0;
    save_model("the best model so far");
    checkpoint();
  } else {
    ++state_.validations_without_improvement;
    if (due(state_.done, state_.last_checkpoint, options_.checkpoint_every)) checkpoint();
  }
}

void Run::save_model(const char* what) {
  with_evaluation_weights([&] {
    save_model_directory(run_, options_.model, data_.tokenizers.source, data_.tokenizers.target,
                         model_->parameters().views(model_->parameters().flat_master()));
  });
  logger().debug("{}: {} saved", options_.run, what);
}

void Run::checkpoint() {
  const auto before = Clock::now();
  if (!state_.best_criterion) save_model("the latest model");
  state_.last_checkpoint = state_.done;
  save_run(run_, state_, *model_, *engine_);
  std::set<int64_t> keep;
  if (state_.best_update > 0) keep.insert(state_.best_update);
  prune_checkpoints(run_, std::max(options_.keep_last, options_.average_last), keep);
  log_.write("checkpoint", {{"update", state_.done.updates}});
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
}

void Run::use_average_of_checkpoints() {
  std::vector<Path> paths;
  const std::vector<CheckpointFile> files = list_checkpoints(run_);
  const auto count =
      std::min<std::size_t>(files.size(), static_cast<std::size_t>(options_.average_last));
  for (std::size_t i = files.size() - count; i < files.size(); ++i) paths.push_back(files[i].path);
  const Tensor average = Tensor::zeros({model_->parameters().flat_size()}, DType::kFloat32);
  const NamedTensors means = average_models(paths);
  for (const auto& [name, view] : model_->parameters().views(average)) {
    const auto found = std::find_if(means.begin(), means.end(),
                                    [&](const auto& mean) { return mean.first == name; });
    if (found == means.end()) fail("the checkpoints have no weight named '{}'", name);
    convert(found->second, view);
  }
  with_weights(average, [&] {
    ValidationScores scores;
    if (validator_) scores = validator_->run();
    const double criterion = validator_ ? scores.criterion(options_.validation_metric) : 0;
    const bool better = !state_.best_criterion || criterion > *state_.best_criterion;
    log_.validation(state_.done, scores, better);
    logger().info("the average of the last {} checkpoints{}{}", count,
                  scores.bleu ? fmt::format(" has BLEU {:.2f}", *scores.bleu) : "",
                  better ? " becomes the model" : " is no better than the best: not used");
    if (!better) return;
    if (validator_) state_.best_criterion = criterion;
    save_model_directory(run_, options_.model, data_.tokenizers.source, data_.tokenizers.target,
                         model_->parameters().views(model_->parameters().flat_master()));
  });
}

std::string duration(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole >= 3600) return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
  if (whole >= 60) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}s", whole);
}

}  // namespace

std::string to_string(const TrainProgress& progress) {
  std::string text = fmt::format(
      "update {}, epoch {:.2f}, loss {:.3f}, perplexity {:.2f}, {:.0f} tokens/s, learning rate "
      "{:.3g}, gradient norm {:.2f}",
      progress.done.updates, progress.done.epochs, progress.loss, progress.perplexity,
      progress.tokens_per_second, progress.learning_rate, progress.gradient_norm);
  if (progress.skipped_updates > 0) {
    text += fmt::format(", {} skipped", progress.skipped_updates);
  }
  if (progress.seconds_left >= 0) text += ", " + duration(progress.seconds_left) + " left";
  return text;
}

TrainResult train(const TrainOptions& options, const TrainHooks& hooks) {
  options.validate();
  if (options.run.empty()) fail_usage("run: no folder is named for the run; give --run FOLDER");
  return Run(options, hooks).go();
}

}  // namespace attend
