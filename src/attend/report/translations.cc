#include "attend/report/translations.h"

#include <cmath>
#include <limits>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/worker_pool.h"
#include "attend/data/utf8.h"
#include "attend/io/model_directory.h"
#include "attend/kernels/compute_thread.h"
#include "attend/metrics/chrf.h"
#include "attend/metrics/ter.h"
#include "attend/report/series.h"
#include "attend/search/attention_maps.h"
#include "attend/search/load_model.h"
#include "attend/search/translator.h"
#include "attend/train/options.h"

namespace attend {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kLongestShown = 60;  // tokens of a side in a picture of attention

ScoredText read_text(std::string what, const ParallelFiles& files, bool skip_bad_lines) {
  ScoredText text{std::move(what), files.name(), read_parallel_text(files, skip_bad_lines)};
  if (text.lines.source.empty()) fail("{} holds no lines", text.files);
  for (auto* side : {&text.lines.source, &text.lines.target}) {
    for (std::string& line : *side) line = repair_utf8(line).text;
  }
  return text;
}

/// An option of the recipe as a number; `otherwise` where it is none.
double number_of(const ReportedRun& run, std::string_view option, double otherwise) {
  const std::string text = run.value_of(option);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return text.empty() || *end != '\0' || !std::isfinite(value) ? otherwise : value;
}

}  // namespace

std::optional<ScoredText> validation_text(const ReportedRun& run, Notes& notes) {
  const ParallelFiles files{.source = run.value_of("valid_source"),
                            .target = run.value_of("valid_target"),
                            .tsv = run.value_of("valid_tsv")};
  if (files.source.empty() && files.tsv.empty()) {
    if (!run.recipe.empty()) notes.push_back("Its recipe names no validation text");
    return std::nullopt;
  }
  try {
    return read_text("validation", files, run.value_of("skip_bad_lines") == "true");
  } catch (const Error& error) {
    notes.push_back(fmt::format("Its validation text cannot be read any more: {}", error.what()));
    return std::nullopt;
  }
}

std::optional<ScoredText> test_text(const ReportOptions& options) {
  if (options.test_source.empty()) return std::nullopt;
  return read_text("test", {.source = options.test_source, .target = options.test_target}, false);
}

std::unique_ptr<RunModel> RunModel::open(const ReportedRun& run, const ReportOptions& options,
                                         Notes& notes) {
  const TrainOptions usual;
  const auto option = [&](const char* name, double usually, double least, double most) {
    const double value = number_of(run, name, usually);
    if (value >= least && value <= most) return value;
    notes.push_back(fmt::format("Its recipe has {} {}, which cannot be: {} is used instead", name,
                                value, usually));
    return usually;
  };
  const double beam_size = option("valid_beam_size", static_cast<double>(usual.valid_beam_size), 1,
                                  static_cast<double>(kMostHypotheses));
  const double length_penalty = option("valid_length_penalty", usual.valid_length_penalty, 0,
                                       std::numeric_limits<double>::max());
  auto opened = std::make_unique<RunModel>();
  opened->beam_size_ = options.beam_size > 0 ? options.beam_size : std::llround(beam_size);
  opened->length_penalty_ = options.length_penalty.value_or(length_penalty);
  opened->workers_ = options.workers;
  try {
    const ModelFiles files = load_model_directory(run.folder);
    opened->model_ = load_model(files, options.precision);
    opened->source_tokenizer_ = files.source_tokenizer;
    opened->target_tokenizer_ = files.target_tokenizer;
  } catch (const Error& error) {
    // That the folder holds no whole model is among the run's facts already.
    const std::string note = fmt::format("There is no model to use: {}", error.what());
    if (notes.empty() || notes.back() != note) notes.push_back(note);
    return nullptr;
  }
  return opened;
}

std::vector<std::string> RunModel::translate(const std::vector<std::string>& lines) const {
  const Translator translator(
      model_, source_tokenizer_, target_tokenizer_,
      {.search = {.beam_size = beam_size_, .length_penalty = length_penalty_},
       .workers = workers_});
  std::vector<std::string> translations;
  translations.reserve(lines.size());
  for (const Translation& each : translator.translate(lines)) translations.push_back(each.text());
  return translations;
}

Json RunModel::attention(const std::string& source, const std::string& target) const {
  AttentionMap map;
  WorkerPool(1, prepare_compute_thread).run([&](int64_t) {
    map = attention_map(*model_, *source_tokenizer_, *target_tokenizer_, source, target,
                        kLongestShown);
  });
  if (map.weights.empty()) return nullptr;
  Json weights = Json::array();
  for (const float weight : map.weights) weights.push_back(std::lround(weight * 1000));
  return {{"source", map.source_pieces},
          {"target", map.target_pieces},
          {"layers", map.layers},
          {"heads", map.heads},
          {"weights", weights}};
}

Json scores_of(const ScoredText& text, const std::vector<std::string>& translations,
               const BleuOptions& bleu) {
  const References references{text.lines.target};
  Json scores = Json::array();
  const auto add = [&](const Score& score) {
    scores.push_back({{"text", text.what},
                      {"files", text.files},
                      {"sentences", translations.size()},
                      {"metric", score.name},
                      {"value", rounded(score.value)},
                      {"signature", score.signature},
                      {"verbose", score.verbose}});
  };
  add(corpus_bleu(translations, references, bleu));
  add(corpus_chrf(translations, references, {.lowercase = bleu.lowercase}));
  add(corpus_ter(translations, references));
  return scores;
}

}  // namespace attend
