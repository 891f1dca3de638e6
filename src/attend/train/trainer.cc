#include "attend/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "attend/base/available_memory.h"
#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/base/profile.h"
#include "attend/data/corpus_reader.h"
#include "attend/train/bench.h"
#include "attend/train/follower.h"
#include "attend/train/memory_plan.h"
#include "attend/train/run.h"
#include "attend/train/run_folder.h"

namespace attend {
namespace {

/// Before any text is read, which may take long.
void refuse_other_order(const RunState& state, const Checkpoint& checkpoint, const Path& run) {
  if (state.data_fingerprint.starts_with(ParallelCorpus::kFingerprintVersion)) return;
  fail(
      "run {} was started by an older attend ({}), which made batches in another way: go on with "
      "it, "
      "or start another run with --run",
      run.string(), checkpoint.state.value("attend_version", "of an unknown version"));
}

}  // namespace

Run::Run(const TrainOptions& options, const TrainHooks& hooks)
    : options_(options),
      workers_asked_(options.workers),
      hooks_(hooks),
      run_(options.run),
      lock_(run_),
      log_(run_) {
  if (!hooks.summary.empty()) log_.note("attend train: " + hooks.summary);
  options_.workers = resolve_workers(options.workers);
}

void Run::prepare() {
  refuse_lost_checkpoints(run_);
  if (!options_.tensorboard.empty()) refuse_unwritable_folder("tensorboard", options_.tensorboard);
  check_texts(options_);
  std::optional<Checkpoint> latest = load_latest_checkpoint(run_);
  Tokenizers tokenizers;
  DType compute = choose_precision(options_.precision);
  if (latest) {
    tokenizers = tokenizers_of_run(options_, hooks_.stop);
    const RunState recorded = RunState::from_json(latest->state, latest->file.path().string());
    refuse_other_order(recorded, *latest, run_);
    if (options_.precision == Precision::kAuto) {
      compute =
          choose_precision(recorded.precision == name_of(DType::kBFloat16) ? Precision::kBFloat16
                                                                           : Precision::kFloat32);
    }
  } else {
    tokenizers = make_tokenizers(options_, hooks_.stop);
  }
  options_.model.source_vocabulary_size = tokenizers.source->vocabulary_size();
  options_.model.target_vocabulary_size = tokenizers.target->vocabulary_size();
  data_ = load_training_data(options_, std::move(tokenizers), hooks_);
  model_ = std::make_shared<Transformer>(options_.model, compute, true);
  logger().info("model: {} weights, {} + {} layers, d_model {}, d_ff {}, {} heads, {}",
                model_->parameters().weight_count(), options_.model.encoder_layers,
                options_.model.decoder_layers, options_.model.d_model, options_.model.d_ff,
                options_.model.heads, name_of(compute));
  if (hooks_.ranks != nullptr) {
    logger().info("ranks: {}", hooks_.ranks->size());
    set_up_followers(*hooks_.ranks, options_, compute, workers_asked_);
  }
  engine_ = std::make_unique<Engine>(*model_, options_, options_.workers, hooks_.ranks);
  if (latest) {
    restore(*latest);
  } else {
    start_fresh();
  }
  MemoryPlan plan;
  if (options_.memory.bytes > 0) {
    plan = plan_memory(options_, *engine_);
    options_.lane_tokens = plan.lane_tokens;
    engine_->limit_memory(plan.worker_bytes);
  }
  if (data_.valid) {
    validator_ = std::make_unique<Validator>(options_, data_, model_, *engine_, plan);
  }
  state_.precision = name_of(compute);
  state_.data_fingerprint = data_.train->fingerprint();
  if (data_.valid) state_.validation_fingerprint = data_.valid_fingerprint;
  stream_ = std::make_unique<BatchStream>(*data_.train, batch_options(options_), state_.position,
                                          data_.dropout);
}

void Run::restore(const Checkpoint& checkpoint) {
  state_ = restore_run(checkpoint, *model_, *engine_);
  resumed_ = true;
  seconds_before_ = state_.done.seconds;
  share_before_ = progress_of(state_.done, options_.stop_after);
  if (state_.data_fingerprint != data_.train->fingerprint()) {
    fail_usage(
        "the training data is not what run {} was started with: files or tokenizer have "
        "changed; give it the same data, or start another run with --run",
        options_.run);
  }
  compare_validation_data();
  repair_model();
  logger().info("resuming {} after update {}", options_.run, state_.done.updates);
  log_.write("resume", {{"update", state_.done.updates}});
}

/// Other validation data is no error: what is trained does not depend on it.
void Run::compare_validation_data() const {
  const std::string& before = state_.validation_fingerprint;
  if (before.empty() || before == data_.valid_fingerprint) return;
  if (data_.valid) {
    logger().warn(
        "the validation data is not what run {} was validated on before: scores from before do not "
        "compare with those to come, and the best model so far, of update {}, was chosen by them",
        options_.run, state_.best_update);
  } else {
    logger().warn(
        "run {} was validated before and has no validation data now: its model stays the best so "
        "far, of update {}",
        options_.run, state_.best_update);
  }
}

void Run::start_fresh() {
  model_->initialize(options_.seed);
  engine_->take_weights();
  log_.write("start", {{"pairs", data_.train->pairs()},
                       {"data", data_.train->report().to_json()},
                       {"weights", model_->parameters().weight_count()}});
}

/// What this part is asked for is what the next one goes on with, killed at any moment: where the
/// checkpoint to go on from says something else, it is written anew with it.
void Run::take_recipe() {
  if (!hooks_.recipe.empty() && state_.recipe != hooks_.recipe) {
    state_.recipe = hooks_.recipe;
    if (resumed_) save_run(run_, state_, *model_, *engine_);
  }
  write_recipe(run_, state_.recipe);
}

std::string Run::reason_to_finish() const {
  if (reached(state_.done, options_.stop_after)) {
    return fmt::format("stop_after {} reached", to_string(options_.stop_after));
  }
  if (!patience_is_over()) return "";
  return fmt::format("no improvement in {} validations", state_.validations_without_improvement);
}

TrainResult Run::go() {
  try {
    return try_go();
  } catch (const StoppedReading& stopped) {
    logger().info("{}", stopped.what());
    return result_;
  } catch (const std::exception& error) {
    log_.failure(error.what());
    throw;
  }
}

TrainResult Run::try_go() {
  prepare();
  result_.already_finished = !state_.finished.empty() && !reason_to_finish().empty();
  if (result_.already_finished) {
    result_.finished = reason_to_finish();
    result_.go_on_with = patience_is_over() ? "--patience ..." : "";
    if (reached(state_.done, options_.stop_after)) {
      result_.go_on_with += result_.go_on_with.empty() ? "--stop-after ..." : " --stop-after ...";
    }
    result_.done = state_.done;
    logger().info(
        "{} is finished: {}, after {} updates and {:.2f} epochs. To train further: attend train "
        "--run {} {}",
        options_.run, result_.finished, state_.done.updates, state_.done.epochs, options_.run,
        result_.go_on_with);
    write_recipe(run_, state_.recipe);
    return result_;
  }
  take_recipe();
  if (!options_.tensorboard.empty()) {
    log_.open_tensorboard(options_.tensorboard, state_.done.updates);
  }
  state_.finished.clear();
  state_.average_is_model = false;
  start_ = window_start_ = Clock::now();
  if (options_.profile) start_profile();
  for (update_clock(); reason_to_finish().empty() && !stop_asked(); update_clock()) {
    update();
    log_if_due();
    if (validator_ && due(state_.done, state_.last_validation, options_.validate_every)) {
      validate();
    } else if (due(state_.done, state_.last_checkpoint, options_.checkpoint_every)) {
      checkpoint();
    }
  }
  if (options_.profile) report_profile();
  const std::string reason = reason_to_finish();
  if (reason.empty()) {
    checkpoint(false);
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
  if (stats.skipped) return;
  ++window_updates_;
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
  const int64_t saved = state_.last_checkpoint.updates;
  fail(
      "{} updates in a row had a loss or gradient that is not finite: training does not recover. "
      "{}. Start another run with a lower learning_rate, a longer warmup, clip_norm 1, or "
      "precision float32",
      state_.bad_steps_in_row,
      saved > 0 ? fmt::format("The checkpoint of update {} is kept", saved)
                : "No checkpoint had been written yet");
}

TrainProgress Run::progress() const {
  TrainProgress now{.done = state_.done,
                    .share = std::min(1.0, progress_of(state_.done, options_.stop_after)),
                    .learning_rate = learning_rate_,
                    .skipped_updates = state_.skipped_updates,
                    .peak_resident_bytes = peak_resident_bytes()};
  // Without an update that counts these are no numbers, and logged as such.
  const auto tokens = static_cast<double>(window_loss_.tokens);
  now.loss = window_loss_.loss / tokens;
  now.perplexity = std::exp(window_loss_.nll / tokens);
  if (options_.regularization.r_drop > 0) now.divergence = window_loss_.divergence / tokens;
  now.tokens_per_second = static_cast<double>(window_loss_.tokens) / since(window_start_);
  now.gradient_norm = window_norm_ / static_cast<double>(window_updates_);
  const double share_of_part = now.share - share_before_;
  if (share_of_part > 0) now.seconds_left = since(start_) * (1 - now.share) / share_of_part;
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

void Run::report_profile() {
  stop_profile();
  const std::vector<ProfileRow> rows = profile();
  logger().info("where the time of {} worker{} went in {:.1f} s:\n{}", options_.workers,
                options_.workers == 1 ? "" : "s", since(start_), format_profile(rows));
  log_.profile(rows);
}

bool Run::is_better(const ValidationScores& scores) const {
  const double criterion = scores.criterion(options_.validation_metric);
  return std::isfinite(criterion) && (!state_.best_criterion || criterion > *state_.best_criterion);
}

bool Run::is_best(const ValidationScores& scores) const {
  if (is_better(scores)) return true;
  return scores.criterion(options_.validation_metric) == state_.best_criterion &&
         state_.best_loss && scores.loss < *state_.best_loss;
}

void Run::validate() {
  const auto before = Clock::now();
  ValidationScores scores;
  with_evaluation_weights([&] { scores = validator_->run(); });
  const bool better = is_better(scores), best = is_best(scores);
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
  // An equal score is none that patience waits for.
  state_.validations_without_improvement = better ? 0 : state_.validations_without_improvement + 1;
  if (best) {
    state_.best_criterion = scores.criterion(options_.validation_metric);
    state_.best_loss = scores.loss;
    state_.best_update = state_.done.updates;
    save_model();
  }
  const bool scheduled = due(state_.done, state_.last_checkpoint, options_.checkpoint_every);
  if (best || scheduled) checkpoint(scheduled);
}

TrainResult train(const TrainOptions& options, const TrainHooks& hooks) {
  options.validate();
  if (options.run.empty()) fail_usage("run: no folder is named for the run; give --run FOLDER");
  if (holds_foreign_model(options.run)) {
    fail(
        "{} holds a model, but not the run that made it: training there would write over it; "
        "choose another --run",
        options.run);
  }
  return Run(options, hooks).go();
}

}  // namespace attend
