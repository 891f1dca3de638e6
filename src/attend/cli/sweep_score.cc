#include "attend/cli/sweep_score.h"

#include <nlohmann/json.hpp>

#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/data/fingerprint.h"
#include "attend/io/model_directory.h"
#include "attend/metrics/bleu.h"
#include "attend/search/translator.h"
#include "attend/train/run_folder.h"

namespace attend {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 20;

Path score_path(const Path& run) { return run / "test.json"; }

/// What test.json says; a key of "" where there is none that can be used.
struct Recorded {
  std::string key;
  std::string model;  ///< see model_of
  TestText text;
  double bleu = 0;
};

Recorded recorded(const Path& run) {
  std::error_code error;
  if (!std::filesystem::exists(score_path(run), error)) return {};
  try {
    const auto json = nlohmann::json::parse(read_file(score_path(run), kMostBytes));
    return {.key = json.at("key"),
            .model = json.at("model"),
            .text = {json.at("source"), json.at("target")},
            .bleu = json.at("bleu")};
  } catch (const nlohmann::json::exception&) {
    return {};
  }
}

/// Which of a run's models its root holds.
std::string model_of(const Path& run) {
  const RunState state = state_of_run(run).value_or(RunState());
  return fmt::format("{} {} {}", state.done.updates, state.best_update, state.average_is_model);
}

std::string key_of(const TrainOptions& train, const std::vector<std::string>& source,
                   const std::vector<std::string>& target) {
  Fingerprint fingerprint;
  for (const auto* side : {&source, &target}) {
    for (const std::string& line : *side) fingerprint.add(line + "\n");
  }
  fingerprint.add(fmt::format("{} {} {}", model_of(train.run), train.valid_beam_size,
                              train.valid_length_penalty));
  return fingerprint.hex();
}

}  // namespace

ParallelText read_test_text(const TestText& text) {
  ParallelText read = read_parallel_text({.source = text.source, .target = text.target});
  if (read.source.empty()) fail("{} is empty; expected the test text of a sweep", text.source);
  return read;
}

double test_bleu(const TrainOptions& train, const TestText& text) {
  const auto [source, target] = read_test_text(text);
  const std::string key = key_of(train, source, target);
  const Recorded before = recorded(train.run);
  if (before.key == key) return before.bleu;
  const Translator translator(
      {Path(train.run)},
      {.search = {.beam_size = train.valid_beam_size, .length_penalty = train.valid_length_penalty},
       .workers = train.workers});
  std::vector<std::string> hypotheses;
  std::string translations;
  for (const Translation& translation : translator.translate(source)) {
    hypotheses.push_back(translation.text());
    translations += translation.text() + "\n";
  }
  const Score score = corpus_bleu(hypotheses, {target});
  write_file(Path(train.run) / "test.hyp", translations);
  write_file(score_path(train.run),
             nlohmann::json{{"key", key},
                            {"model", model_of(train.run)},
                            {"source", text.source},
                            {"target", text.target},
                            {"bleu", score.value},
                            {"signature", score.signature}}
                     .dump(1, ' ', false, nlohmann::json::error_handler_t::replace) +
                 "\n");
  return score.value;
}

std::optional<double> recorded_test_bleu(const Path& run, const TestText& text) {
  const Recorded score = recorded(run);
  if (score.key.empty() || score.model != model_of(run)) return std::nullopt;
  if (!text.source.empty() && text != score.text) return std::nullopt;
  return score.bleu;
}

}  // namespace attend
