#include "attend/train/run_log.h"

#include <fmt/chrono.h>
#include <spdlog/sinks/base_sink.h>

#include <chrono>
#include <cmath>
#include <mutex>
#include <system_error>
#include <utility>

#include "attend/base/log.h"
#include "attend/io/profile_json.h"

namespace attend {
namespace {

/// JSON has no NaN and no infinity.
nlohmann::ordered_json number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

/// Seconds since 1970.
double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string_view prefix_of(spdlog::level::level_enum level) {
  if (level >= spdlog::level::err) return "error: ";
  return level == spdlog::level::warn ? "warning: " : "";
}

}  // namespace

/// The log's lines with the time before them.
class RunLog::TextSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit TextSink(Path path) : file_(std::move(path)) {}
  const LineFile& file() const { return file_; }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string_view text(message.payload.data(), message.payload.size());
    const auto seconds = std::chrono::time_point_cast<std::chrono::seconds>(message.time);
    file_.add(fmt::format("{:%Y-%m-%d %H:%M:%S} {}{}",
                          fmt::localtime(std::chrono::system_clock::to_time_t(seconds)),
                          prefix_of(message.level), text));
  }
  void flush_() override {}  // nothing is held back

 private:
  LineFile file_;
};

RunLog::RunLog(const Path& run)
    : jsonl_(jsonl(run)), text_(std::make_shared<TextSink>(run / "train.log")) {
  logger().sinks().push_back(text_);
}

RunLog::~RunLog() { std::erase(logger().sinks(), text_); }

void RunLog::note(const std::string& text) { text_->log({"attend", spdlog::level::info, text}); }

void RunLog::write(const char* event, const nlohmann::ordered_json& fields) {
  nlohmann::ordered_json line{{"event", event}, {"time", now()}};
  line.update(fields);
  jsonl_.add(line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  warn_once(jsonl_.path(), jsonl_.problem(), warned_jsonl_);
  warn_once(text_->file().path(), text_->file().problem(), warned_text_);
  if (tensorboard_ == nullptr) return;
  const EventFile& events = tensorboard_->file();
  warn_once(events.path(), events.problem(), warned_tensorboard_);
}

void RunLog::open_tensorboard(const Path& folder, int64_t updates) {
  tensorboard_ = std::make_unique<TensorboardLog>(folder, now(), updates);
}

void RunLog::warn_once(const Path& path, int problem, bool& warned) const {
  if (problem == 0 || std::exchange(warned, true)) return;
  logger().warn("{} cannot be written ({}); training goes on without it", path.string(),
                std::generic_category().message(problem));
}

void RunLog::failure(const std::string& message) {
  text_->log({"attend", spdlog::level::err, message});
  write("error", {{"message", message}});
}

void RunLog::progress(const TrainProgress& progress) {
  if (tensorboard_ != nullptr) tensorboard_->progress(now(), progress);
  nlohmann::ordered_json fields{{"update", progress.done.updates},
                                {"epoch", progress.done.epochs},
                                {"target_tokens", progress.done.tokens},
                                {"seconds", progress.done.seconds},
                                {"loss", number(progress.loss)},
                                {"perplexity", number(progress.perplexity)},
                                {"tokens_per_second", progress.tokens_per_second},
                                {"learning_rate", progress.learning_rate},
                                {"gradient_norm", number(progress.gradient_norm)},
                                {"skipped_updates", progress.skipped_updates},
                                {"peak_resident_bytes", progress.peak_resident_bytes}};
  if (progress.divergence) fields["divergence"] = number(*progress.divergence);
  write("train", fields);
}

void RunLog::validation(const TrainingAmount& done, const ValidationScores& scores, bool best) {
  nlohmann::ordered_json fields{{"update", done.updates},
                                {"epoch", done.epochs},
                                {"target_tokens", done.tokens},
                                {"seconds", done.seconds},
                                {"loss", number(scores.loss)},
                                {"perplexity", number(scores.perplexity)},
                                {"accuracy", number(scores.accuracy)}};
  if (tensorboard_ != nullptr) tensorboard_->validation(now(), done, scores);
  if (scores.bleu) fields["bleu"] = *scores.bleu;
  if (scores.chrf) fields["chrf"] = *scores.chrf;
  fields["best"] = best;
  write("validation", fields);
}

void RunLog::profile(const std::vector<ProfileRow>& rows) {
  write("profile", {{"ops", profile_json(rows, "op")}});
}

}  // namespace attend
