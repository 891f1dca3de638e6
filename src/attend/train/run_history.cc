#include "attend/train/run_history.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace attend {
namespace {

using Json = nlohmann::ordered_json;

double number(const Json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number()) return std::numeric_limits<double>::quiet_NaN();
  return found->get<double>();
}

std::optional<double> optional_number(const Json& line, const char* key) {
  const double value = number(line, key);
  return std::isnan(value) ? std::nullopt : std::optional(value);
}

/// From 0; 0 where there is none.
int64_t whole(const Json& line, const char* key) {
  constexpr double kMost = 9e15;  // up to which a double holds whole numbers exactly
  const double value = number(line, key);
  return value >= 0 && value <= kMost ? static_cast<int64_t>(value) : 0;
}

std::string text(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_string() ? found->get<std::string>() : "";
}

TrainingAmount amount_of(const Json& line) {
  return {.epochs = number(line, "epoch"),
          .updates = whole(line, "update"),
          .tokens = whole(line, "target_tokens"),
          .seconds = number(line, "seconds")};
}

const TrainingAmount& amount_of(const RunHistory::Training& entry) { return entry.progress.done; }
const TrainingAmount& amount_of(const RunHistory::Validation& entry) { return entry.done; }

/// Forgets what was logged of updates after `update`.
template <typename Entry>
void cut_after(std::vector<Entry>& entries, int64_t update) {
  const auto after = [&](const Entry& entry) { return amount_of(entry).updates > update; };
  entries.erase(std::find_if(entries.begin(), entries.end(), after), entries.end());
}

class HistoryReader {
 public:
  /// False where the line is none of a log.
  bool take(const std::string& text);
  RunHistory history;

 private:
  void take_start(const Json& line);
  void take_training(const Json& line, double time);
  void take_validation(const Json& line, double time);
  void resume_after(int64_t update);
};

void HistoryReader::resume_after(int64_t update) {
  cut_after(history.training, update);
  cut_after(history.validations, update);
  ++history.resumes;
}

void HistoryReader::take_start(const Json& line) {
  history.training.clear();
  history.validations.clear();
  history.skipped_updates = 0;
  history.pairs = whole(line, "pairs");
  history.weights = whole(line, "weights");
  history.data.clear();
  const auto data = line.find("data");
  if (data == line.end() || !data->is_object()) return;
  for (const auto& [reason, count] : data->items()) {
    if (count.is_number()) history.data[reason] = whole(*data, reason.c_str());
  }
}

void HistoryReader::take_training(const Json& line, double time) {
  RunHistory::Training entry{.time = time, .progress = {}};
  TrainProgress& progress = entry.progress;
  progress.done = amount_of(line);
  progress.loss = number(line, "loss");
  progress.perplexity = number(line, "perplexity");
  progress.tokens_per_second = number(line, "tokens_per_second");
  progress.learning_rate = number(line, "learning_rate");
  progress.gradient_norm = number(line, "gradient_norm");
  history.skipped_updates = progress.skipped_updates = whole(line, "skipped_updates");
  progress.peak_resident_bytes = whole(line, "peak_resident_bytes");
  cut_after(history.training, progress.done.updates - 1);
  history.training.push_back(entry);
}

void HistoryReader::take_validation(const Json& line, double time) {
  RunHistory::Validation entry{.time = time, .done = amount_of(line), .scores = {}};
  entry.scores = {.loss = number(line, "loss"),
                  .perplexity = number(line, "perplexity"),
                  .accuracy = number(line, "accuracy"),
                  .bleu = optional_number(line, "bleu"),
                  .chrf = optional_number(line, "chrf")};
  const auto best = line.find("best");
  entry.best = best != line.end() && best->is_boolean() && best->get<bool>();
  cut_after(history.validations, entry.done.updates);
  auto& all = history.validations;
  if (all.empty() || all.back().done.updates != entry.done.updates) {
    all.push_back(entry);
  } else if (entry.best) {
    all.back() = entry;
  }
}

bool HistoryReader::take(const std::string& line_text) {
  const Json line = Json::parse(line_text, nullptr, false);
  if (!line.is_object()) return false;
  const std::string event = text(line, "event");
  const double time = number(line, "time");
  if (event.empty()) return false;
  if (std::isfinite(time)) {
    if (history.started == 0) history.started = time;
    history.last_time = time;
  }
  if (event == "start") take_start(line);
  if (event == "resume") resume_after(whole(line, "update"));
  if (event == "train") take_training(line, time);
  if (event == "validation") take_validation(line, time);
  // Whatever comes after an end or an error takes it back.
  if (event == "finish") {
    history.finished = text(line, "reason");
    if (history.finished.empty()) history.finished = "finished";
  } else if (event != "profile") {
    history.finished.clear();
  }
  history.error = event == "error" ? text(line, "message") : "";
  return true;
}

}  // namespace

TrainingAmount RunHistory::done() const {
  TrainingAmount last;
  if (!training.empty()) last = amount_of(training.back());
  if (!validations.empty() && validations.back().done.updates >= last.updates) {
    last = validations.back().done;
  }
  return last;
}

const RunHistory::Validation* RunHistory::best_validation() const {
  const auto best = std::find_if(validations.rbegin(), validations.rend(),
                                 [](const Validation& each) { return each.best; });
  return best == validations.rend() ? nullptr : &*best;
}

RunHistory read_history(const NextLine& next_line) {
  HistoryReader reader;
  bool last_is_bad = false;
  for (std::string line; next_line(line);) {
    if (last_is_bad) ++reader.history.unreadable_lines;
    last_is_bad = !reader.take(line) && !line.empty();
  }
  return std::move(reader.history);
}

}  // namespace attend
