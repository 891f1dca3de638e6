#include "attend/report/run_facts.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <system_error>

#include <fmt/chrono.h>

#include "attend/base/error.h"
#include "attend/data/text.h"
#include "attend/io/model_directory.h"
#include "attend/report/series.h"
#include "attend/search/load_model.h"
#include "attend/tensor/tensor.h"
#include "attend/train/run_log.h"

namespace attend {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostPoints = 2000;  // of a curve

/// "2026-11-30 03:42", in UTC; empty where the time is not known.
std::string date_of(double seconds) {
  constexpr double kMost = 253'402'300'799;  // the end of the year 9999
  if (!(seconds > 0 && seconds < kMost)) return "";
  return fmt::format("{:%Y-%m-%d %H:%M}", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

Json done_of(const TrainingAmount& done) {
  return {{"updates", done.updates},
          {"epochs", rounded(done.epochs)},
          {"tokens", done.tokens},
          {"seconds", rounded(done.seconds)}};
}

std::string state_of(const RunHistory& history) {
  if (!history.finished.empty()) return "Finished: " + history.finished;
  if (!history.error.empty()) return "Stopped by an error: " + history.error;
  return "Not finished";
}

Json best_of(const RunHistory& history) {
  const RunHistory::Validation* const best = history.best_validation();
  if (best == nullptr) return nullptr;
  Json json = {{"update", best->done.updates},
               {"loss", rounded(best->scores.loss)},
               {"perplexity", rounded(best->scores.perplexity)},
               {"accuracy", rounded(100 * best->scores.accuracy)}};
  if (best->scores.bleu) json["bleu"] = rounded(*best->scores.bleu);
  if (best->scores.chrf) json["chrf"] = rounded(*best->scores.chrf);
  return json;
}

/// Of all updates.
Json mean_speed(const RunHistory& history) {
  double seconds_per_token = 0;
  int64_t count = 0;
  for (const RunHistory::Training& each : history.training) {
    if (!(each.progress.tokens_per_second > 0)) continue;  // all its updates were skipped
    seconds_per_token += 1 / each.progress.tokens_per_second;
    ++count;
  }
  return rounded(static_cast<double>(count) / seconds_per_token);
}

Json recipe_of(const ReportedRun& run) {
  Json recipe = Json::array();
  for (const RecipeOption& option : run.recipe) {
    recipe.push_back({{"group", option.group},
                      {"name", option.name},
                      {"value", option.value},
                      {"usual", option.usual},
                      {"help", option.help}});
  }
  return recipe;
}

Json tokenizer_of(const char* side, const Tokenizer& tokenizer) {
  return {{"side", side},
          {"pieces", tokenizer.vocabulary_size()},
          {"byte_fallback", tokenizer.has_byte_fallback()},
          {"fingerprint", tokenizer.fingerprint()}};
}

/// The numbers that the model learns: an int8 matrix's scales are none.
int64_t count_weights_of(const SafetensorsFile& file) {
  int64_t count = 0;
  for (const auto& [name, tensor] : file.tensors()) {
    if (!name.ends_with(kScaleSuffix)) count += count_of(tensor.shape);
  }
  return count;
}

void add_model(const Path& folder, Json& facts, Notes& notes) {
  std::optional<ModelFiles> files;
  try {
    files = load_model_directory(folder);
  } catch (const Error& error) {
    notes.push_back(fmt::format("There is no model to use: {}", error.what()));
    return;
  }
  facts["model"] = Json::parse(to_json(files->config));
  facts["weights"] = count_weights_of(files->weights);
  facts["stored"] = name_of(stored_dtype(files->weights));
  std::error_code error;
  const auto bytes = std::filesystem::file_size(folder / kWeightsFile, error);
  if (!error) facts["bytes"] = bytes;
  Json tokenizers = Json::array();
  if (files->source_tokenizer == files->target_tokenizer) {
    tokenizers.push_back(tokenizer_of("both sides", *files->source_tokenizer));
  } else {
    tokenizers.push_back(tokenizer_of("source", *files->source_tokenizer));
    tokenizers.push_back(tokenizer_of("target", *files->target_tokenizer));
  }
  facts["tokenizers"] = tokenizers;
}

void note_history(const RunHistory& history, Notes& notes) {
  if (history.unreadable_lines > 0) {
    notes.push_back(fmt::format("{} of log.jsonl cannot be read and {} left out",
                                history.unreadable_lines == 1
                                    ? "A line"
                                    : fmt::format("{} lines", history.unreadable_lines),
                                history.unreadable_lines == 1 ? "was" : "were"));
  }
  if (history.training.empty()) notes.push_back("Nothing has been logged of its training yet");
  if (history.skipped_updates > 0) {
    notes.push_back(fmt::format("{} updates were skipped, as the loss or gradient was not finite",
                                history.skipped_updates));
  }
}

}  // namespace

RunHistory history_of(const Path& run) {
  const Path log = RunLog::jsonl(run);
  std::error_code error;
  if (!std::filesystem::is_directory(run, error)) {
    fail("{} is no folder; expected the folder of a run (attend train --run DIR)", run.string());
  }
  if (!std::filesystem::is_regular_file(log, error)) {
    fail("{} holds no log.jsonl; expected the folder of a run (attend train --run DIR)",
         run.string());
  }
  LineReader reader(log.string());
  return read_history([&](std::string& line) { return reader.next(line); });
}

Json facts_of(const ReportedRun& run, const RunHistory& history, Notes& notes) {
  Json facts;
  facts["folder"] = run.folder.string();
  facts["state"] = state_of(history);
  facts["started"] = date_of(history.started);
  facts["last"] = date_of(history.last_time);
  facts["resumes"] = history.resumes;
  facts["done"] = done_of(history.done());
  facts["best"] = best_of(history);
  facts["speed"] = mean_speed(history);
  if (!history.training.empty()) {
    int64_t peak = 0;
    for (const auto& each : history.training)
      peak = std::max(peak, each.progress.peak_resident_bytes);
    if (peak > 0) facts["peak_resident_bytes"] = peak;
  }
  facts["pairs"] = history.pairs;
  facts["data"] = history.data;
  facts["weights"] = history.weights;
  note_history(history, notes);
  if (!run.recipe_problem.empty()) {
    notes.push_back("Its recipe cannot be read: " + run.recipe_problem);
  }
  facts["recipe"] = recipe_of(run);
  add_model(run.folder, facts, notes);
  facts["training"] = training_series(history.training, kMostPoints);
  facts["validation"] = validation_series(history.validations, kMostPoints);
  return facts;
}

}  // namespace attend
