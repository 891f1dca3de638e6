#include "attend/train/run_log.h"

#include <spdlog/sinks/basic_file_sink.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>

#include "attend/base/log.h"

namespace attend {
namespace {

/// JSON has no NaN and no infinity.
nlohmann::ordered_json number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

}  // namespace

RunLog::RunLog(const Path& run) : path_(run / "log.jsonl"), jsonl_(path_, std::ios::app) {
  try {
    text_ = std::make_shared<spdlog::sinks::basic_file_sink_mt>((run / "train.log").string());
    text_->set_pattern("%Y-%m-%d %H:%M:%S %v");
    logger().sinks().push_back(text_);
  } catch (const spdlog::spdlog_ex& error) {
    logger().warn("no train.log will be written: {}", error.what());
  }
}

RunLog::~RunLog() {
  auto& sinks = logger().sinks();
  sinks.erase(std::remove(sinks.begin(), sinks.end(), text_), sinks.end());
}

void RunLog::write(const char* event, nlohmann::ordered_json fields) {
  const double time =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  nlohmann::ordered_json line{{"event", event}, {"time", time}};
  line.update(fields);
  jsonl_ << line.dump() << '\n' << std::flush;
  if (!jsonl_ && !warned_) {
    logger().warn("{} cannot be written ({}); training goes on without it", path_.string(),
                  std::strerror(errno));
    warned_ = true;
  }
}

void RunLog::progress(const TrainProgress& progress) {
  write("train", {{"update", progress.done.updates},
                  {"epoch", progress.done.epochs},
                  {"target_tokens", progress.done.tokens},
                  {"seconds", progress.done.seconds},
                  {"loss", number(progress.loss)},
                  {"perplexity", number(progress.perplexity)},
                  {"tokens_per_second", progress.tokens_per_second},
                  {"learning_rate", progress.learning_rate},
                  {"gradient_norm", number(progress.gradient_norm)},
                  {"skipped_updates", progress.skipped_updates}});
}

void RunLog::validation(const TrainingAmount& done, const ValidationScores& scores, bool best) {
  nlohmann::ordered_json fields{{"update", done.updates},
                                {"epoch", done.epochs},
                                {"target_tokens", done.tokens},
                                {"seconds", done.seconds},
                                {"loss", number(scores.loss)},
                                {"perplexity", number(scores.perplexity)},
                                {"accuracy", number(scores.accuracy)}};
  if (scores.bleu) fields["bleu"] = *scores.bleu;
  if (scores.chrf) fields["chrf"] = *scores.chrf;
  fields["best"] = best;
  write("validation", fields);
}

}  // namespace attend
