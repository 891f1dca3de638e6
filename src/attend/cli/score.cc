#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/cli/answer_format.h"
#include "attend/cli/command.h"
#include "attend/cli/nbest_list.h"
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
           "-inf, and a warning names it. The perplexity of all\nis logged. What else is asked for "
           "follows behind \" ||| \", as in translate.\n\nWith --n-best instead of --target the "
           "translations are those of n-best lists, \"INDEX ||| TRANSLATION\"\nand maybe more "
           "fields, as Moses and attend translate write them; INDEX counts the lines of "
           "the\nsource "
           "from 0. They come out as they were, with the score as one more field, the best of each "
           "list\nfirst. docs/scoring.md says more.\n\n"
           "Examples\n  attend score runs/m30k --source test.en --target test.de > scores\n"
           "  attend score runs/big --source test.en --n-best lists > rescored";
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
  ScoreCounts score_lists(PairScorer& scorer, Output& output) const;
  std::string line_of(int64_t index, const Alternative& answer) const;

  std::string model_;
  std::string source_;
  std::string target_;
  std::string n_best_;
  std::string output_ = "-";
  ScoreKind score_ = ScoreKind::kLogProb;
  PairScorerOptions scorer_;
  AnswerFormat format_;
};

/// The lines of one n-best list, to be sorted when all are scored.
class ListSorter {
 public:
  ListSorter(Output& output, bool least_first) : output_(output), least_first_(least_first) {}

  void add(int64_t index, double score, std::string line) {
    if (index != index_) write();
    index_ = index;
    lines_.emplace_back(least_first_ ? score : -score, std::move(line));
  }
  void write() {
    std::stable_sort(lines_.begin(), lines_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [key, line] : lines_) output_.write_line(line);
    lines_.clear();
  }

 private:
  Output& output_;
  bool least_first_;
  int64_t index_ = -1;
  std::vector<std::pair<double, std::string>> lines_;
};

void ScoreCommand::define(OptionSet& options) {
  options.group("Text");
  options.add("model", model_, "A model folder, or the folder of a run")
      .positional()
      .metavar("DIR");
  options.add("source", source_, "Source text; .gz or not; - is standard input").metavar("FILE");
  options.add("target", target_, "What is to be scored, line by line the translation")
      .metavar("FILE");
  options.add("n_best", n_best_, "Or n-best lists, to be scored and sorted anew").metavar("FILE");
  options.add("output", output_, "- is standard output").metavar("FILE");
  options.group("Scores");
  options.add("score", score_, "What is printed");
  options.add("length_penalty", scorer_.length_penalty, "Alpha of the normalized score").quality();
  format_.define(options, scorer_.details);
  options.group("Speed and memory");
  options.add("batch_tokens", scorer_.batch_tokens,
              "Tokens of both sides that a worker runs at once; it does not change the result");
  options.add("workers", scorer_.workers, "Threads; 0 is one a core");
  options
      .add("precision", scorer_.precision,
           "Of matrix products; auto is int8 for a converted model, else bfloat16 where that "
           "is faster")
      .quality();
}

void ScoreCommand::require() const {
  if (model_.empty()) fail_usage("--model DIR is missing: a model folder, or the folder of a run");
  if (source_.empty()) fail_usage("--source FILE is missing: the text that was translated");
  if (target_.empty() && n_best_.empty()) {
    fail_usage("--target FILE is missing, or --n-best FILE: the translations to score");
  }
  if (!target_.empty() && !n_best_.empty()) {
    fail_usage("target and n_best are both given; expected one of them");
  }
  const std::string& scored = target_.empty() ? n_best_ : target_;
  if (source_ == "-" && scored == "-") {
    fail_usage("source and {} are both standard input; name a file for one of them",
               target_.empty() ? "n_best" : "target");
  }
  if (!n_best_.empty() && format_.format == OutputFormat::kJson) {
    fail_usage("format: found json, but n-best lists come out as they go in, as text");
  }
  std::vector<std::string> read = files_of_model(model_);
  read.insert(read.end(), {source_, scored});
  refuse_to_overwrite(output_, read);
}

std::string ScoreCommand::line_of(int64_t index, const Alternative& answer) const {
  const double score = value_of(score_, answer);
  return format_.format == OutputFormat::kJson
             ? json_line(index, answer, score, scorer_.details)
             : fmt::format("{:.6f}", score) + detail_fields(answer, scorer_.details);
}

ScoreCounts ScoreCommand::score_pairs(PairScorer& scorer, Output& output) const {
  const ParallelFiles files{.source = source_, .target = target_};
  ParallelReader reader(files, false, TextUse::kWork);
  int64_t line = 0, index = 0;
  return scorer.score_stream(
      [&](GivenPair& pair) {
        if (!reader.next(pair.source, pair.target)) return false;
        pair.where = fmt::format("{}, line {}", files.name(), ++line);
        return true;
      },
      [&](const Alternative& answer) { output.write_line(line_of(index++, answer)); });
}

ScoreCounts ScoreCommand::score_lists(PairScorer& scorer, Output& output) const {
  NBestReader reader(n_best_, source_);
  ListSorter sorter(output, score_ == ScoreKind::kPerplexity);
  std::deque<NBestLine> pending;
  const ScoreCounts counts = scorer.score_stream(
      [&](GivenPair& pair) {
        NBestLine line;
        if (!reader.next(line, pair.source)) return false;
        pair.target = std::exchange(line.text, {});
        pair.where = reader.where();
        pending.push_back(std::move(line));
        return true;
      },
      [&](const Alternative& answer) {
        const NBestLine& line = pending.front();
        const std::string fields = std::string(kFieldSeparator) + line_of(line.index, answer);
        sorter.add(line.index, value_of(score_, answer), line.whole + fields);
        pending.pop_front();
      });
  sorter.write();
  return counts;
}

void ScoreCommand::run(const OptionSet&) {
  PairScorerOptions settings = scorer_;
  settings.workers = resolve_workers(scorer_.workers);
  PairScorer scorer(model_, settings);
  Output output(output_);
  const auto start = Clock::now();
  const ScoreCounts counts =
      n_best_.empty() ? score_pairs(scorer, output) : score_lists(scorer, output);
  output.finish();
  const std::chrono::duration<double> passed = Clock::now() - start;
  const auto tokens = static_cast<double>(counts.target_tokens);
  logger().info("{}, {}, log P {:.4f}, perplexity {:.4f}; {:.1f} s ({:.0f} tokens/s; {}, {})",
                counted(counts.pairs, "pair"), counted(counts.target_tokens, "token"),
                counts.log_prob, counts.perplexity(), passed.count(), tokens / passed.count(),
                counted(scorer.workers(), "worker"), attend::name_of(scorer.precision()));
}

}  // namespace

std::unique_ptr<Command> make_score_command() { return std::make_unique<ScoreCommand>(); }

}  // namespace attend
