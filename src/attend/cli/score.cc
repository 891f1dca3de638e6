#include <chrono>
#include <cmath>

#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/cli/command.h"
#include "attend/cli/output.h"
#include "attend/data/parallel_text.h"
#include "attend/io/model_directory.h"
#include "attend/search/pair_scorer.h"
#include "attend/tensor/tensor.h"
#include "attend/train/bench.h"

namespace attend {

namespace {
enum class ScoreKind { kLogProb, kNormalized, kPerplexity };
}  // namespace

template <>
struct Choices<ScoreKind> {
  static constexpr ScoreKind kAll[] = {ScoreKind::kLogProb, ScoreKind::kNormalized,
                                       ScoreKind::kPerplexity};
};

namespace {

using Clock = std::chrono::steady_clock;

std::string_view name_of(ScoreKind kind) {
  switch (kind) {
    case ScoreKind::kLogProb:
      return "log_prob";
    case ScoreKind::kNormalized:
      return "normalized";
    case ScoreKind::kPerplexity:
      return "perplexity";
  }
  return "?";
}

double value_of(ScoreKind kind, const Alternative& answer) {
  switch (kind) {
    case ScoreKind::kLogProb:
      return answer.log_prob;
    case ScoreKind::kNormalized:
      return answer.score;
    case ScoreKind::kPerplexity:
      break;
  }
  return std::exp(-answer.log_prob / static_cast<double>(std::max<int64_t>(answer.tokens, 1)));
}

class ScoreCommand : public Command {
 public:
  std::string_view name() const override { return "score"; }
  std::string_view summary() const override {
    return "Say how probable a trained model finds given translations";
  }
  std::string_view details() const override {
    return "One line comes out for each pair of lines that goes in: its score. log_prob is log "
           "P(target, end of\nsentence | source), a natural logarithm; normalized divides it by "
           "((5 + |Y|) / 6)^alpha, as\ntranslate does; perplexity is exp(-log P / |Y|). |Y| counts "
           "the end of sentence. A pair that is\nlonger than the model's max_length has the log P "
           "-inf, and a warning names it. Behind \" ||| \"\n--token-scores adds log P of each "
           "token "
           "and of the end of sentence. The perplexity of all is logged.\n\n"
           "Example\n  attend score runs/m30k --source test.en --target test.de > scores";
  }

  void define(OptionSet& options) override;
  void resolve(const OptionSet& options, const Assignments& config,
               const Assignments& flags) override {
    Command::resolve(options, config, flags);
    scorer_.validate();
  }
  void require() const override;
  void run(const OptionSet& options) override;

 private:
  ScoreCounts score_pairs(PairScorer& scorer, Output& output) const;
  std::string format(const Alternative& answer) const;

  std::string model_;
  std::string source_;
  std::string target_;
  std::string output_ = "-";
  ScoreKind score_ = ScoreKind::kLogProb;
  PairScorerOptions scorer_;
};

void ScoreCommand::define(OptionSet& options) {
  options.group("Text");
  options.add("model", model_, "A model folder, or the folder of a run")
      .positional()
      .metavar("DIR");
  options.add("source", source_, "Source text; .gz or not; - is standard input").metavar("FILE");
  options.add("target", target_, "What is to be scored, line by line the translation")
      .metavar("FILE");
  options.add("output", output_, "- is standard output").metavar("FILE");
  options.group("Scores");
  options.add("score", score_, "What is printed");
  options.add("length_penalty", scorer_.length_penalty, "Alpha of the normalized score").quality();
  options.add("token_scores", scorer_.details.tokens, "Print log P of each token, too");
  options.group("Speed and memory");
  options.add("batch_tokens", scorer_.batch_tokens,
              "Tokens of both sides that a worker runs at once; it does not change the result");
  options.add("workers", scorer_.workers, "Threads; 0 is one a core");
  options
      .add("precision", scorer_.precision,
           "Of matrix products; auto is bfloat16 where the CPU has it")
      .quality();
}

void ScoreCommand::require() const {
  if (model_.empty()) fail_usage("--model DIR is missing: a model folder, or the folder of a run");
  if (source_.empty()) fail_usage("--source FILE is missing: the text that was translated");
  if (target_.empty()) fail_usage("--target FILE is missing: the translations to score");
  if (source_ == "-" && target_ == "-") {
    fail_usage("source and target are both standard input; name a file for one of them");
  }
  std::vector<std::string> read = files_of_model(model_);
  read.insert(read.end(), {source_, target_});
  refuse_to_overwrite(output_, read);
}

std::string ScoreCommand::format(const Alternative& answer) const {
  std::string line = fmt::format("{:.6f}", value_of(score_, answer));
  if (!scorer_.details.tokens) return line;
  line += " |||";
  for (const float log_prob : answer.token_log_probs) line += fmt::format(" {:.6f}", log_prob);
  return line;
}

ScoreCounts ScoreCommand::score_pairs(PairScorer& scorer, Output& output) const {
  const ParallelFiles files{.source = source_, .target = target_};
  ParallelReader reader(files, false, TextUse::kWork);
  int64_t line = 0;
  return scorer.score_stream(
      [&](GivenPair& pair) {
        if (!reader.next(pair.source, pair.target)) return false;
        pair.where = fmt::format("{}, line {}", files.name(), ++line);
        return true;
      },
      [&](const Alternative& answer) { output.write_line(format(answer)); });
}

void ScoreCommand::run(const OptionSet&) {
  PairScorerOptions settings = scorer_;
  settings.workers = resolve_workers(scorer_.workers);
  PairScorer scorer(model_, settings);
  Output output(output_);
  const auto start = Clock::now();
  const ScoreCounts counts = score_pairs(scorer, output);
  output.finish();
  const std::chrono::duration<double> passed = Clock::now() - start;
  const auto tokens = static_cast<double>(counts.target_tokens);
  logger().info("{}, {}, log P {:.4f}, perplexity {:.4f}; {:.1f} s ({:.0f} tokens/s; {}, {})",
                counted(counts.pairs, "pair"), counted(counts.target_tokens, "token"),
                counts.log_prob, counts.perplexity(), passed.count(), tokens / passed.count(),
                counted(scorer.workers(), "worker"), attend::name_of(scorer.compute()));
}

}  // namespace

std::unique_ptr<Command> make_score_command() { return std::make_unique<ScoreCommand>(); }

}  // namespace attend
