#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>

#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/cli/answer_format.h"
#include "attend/cli/command.h"
#include "attend/cli/constraint_files.h"
#include "attend/cli/output.h"
#include "attend/cli/status_line.h"
#include "attend/cli/translator_options.h"
#include "attend/data/text.h"
#include "attend/io/model_directory.h"
#include "attend/search/load_model.h"
#include "attend/search/translator.h"
#include "attend/train/bench.h"

namespace attend {
namespace {

using Clock = std::chrono::steady_clock;

class TranslateCommand : public Command {
 public:
  std::string_view name() const override { return "translate"; }
  std::string_view summary() const override {
    return "Translate text line by line with a trained model";
  }
  std::string_view details() const override {
    return "One line comes out for each line that goes in, in the same order. With --n-best above "
           "1 there are\nup to as many, each \"INDEX ||| TRANSLATION ||| SCORE\": the index counts "
           "lines from 0, the best\ncomes first, and the score is log P / ((5 + |Y|) / 6)^alpha, "
           "with natural logarithms and alpha the\nlength penalty. What else is asked for follows "
           "behind \" ||| \": token scores, alignments (Pharaoh:\nSOURCE-TARGET words from 0), "
           "attention (a token's weights with commas). docs/scoring.md says more.\n\n"
           "On a terminal each line is answered as it is typed; Ctrl-D ends.\n\n"
           "Example\n  attend translate --model runs/m30k < test.en > test.out";
  }

  void define(OptionSet& options) override {
    options.group("Text");
    options
        .add("model", models_,
             "A model folder, or the folder of a run; several translate together, by the mean of "
             "their probabilities")
        .positional()
        .metavar("DIR");
    options.add("input", input_, "Text to translate; .gz or not; - is standard input")
        .metavar("FILE");
    options.add("output", output_, "- is standard output").metavar("FILE");
    constraints_.define(options);
    define_translator_options(options, translator_);
    format_.define(options, translator_.details);
  }

  void resolve(const OptionSet& options, const Assignments& config,
               const Assignments& flags) override {
    Command::resolve(options, config, flags);
    translator_.validate();
  }

  void require() const override {
    if (models_.empty()) {
      fail_usage("--model DIR is missing: a model folder, or the folder of a run");
    }
    std::vector<std::string> read = {input_};
    for (const std::string& model : models_) {
      const std::vector<std::string> files = files_of_model(model);
      read.insert(read.end(), files.begin(), files.end());
    }
    if (!translator_.shortlist.empty()) read.push_back(translator_.shortlist);
    constraints_.require();
    for (const std::string& path : constraints_.paths()) read.push_back(path);
    refuse_to_overwrite(output_, read);
  }

  void run(const OptionSet& options) override;

 private:
  void write(Output& output, int64_t index, const Translation& translation) const;

  std::vector<std::string> models_;
  std::string input_ = "-";
  std::string output_ = "-";
  ConstraintFiles constraints_;
  TranslatorOptions translator_;
  AnswerFormat format_;
};

/// Asks for the next line where a person types it and sees the answer.
class Prompt {
 public:
  Prompt(Output& output, bool shown) : output_(output), shown_(shown) { show("> "); }
  /// After an answer.
  void again() const { show("> "); }
  /// Behind the last one, so that the shell's own prompt gets a line to itself.
  void end() const { show("\n"); }

 private:
  void show(std::string_view text) const {
    if (!shown_) return;
    output_.write(text);
    output_.flush();
  }
  Output& output_;
  bool shown_;
};

void TranslateCommand::write(Output& output, int64_t index, const Translation& translation) const {
  const bool several = translator_.search.n_best > 1;
  const DetailOptions& details = translator_.details;
  output.write_line(format_.format == OutputFormat::kJson
                        ? json_line(index, translation, several, details)
                        : text_lines(index, translation, several, details));
  output.flush();
}

void TranslateCommand::run(const OptionSet&) {
  TranslatorOptions settings = translator_;
  settings.workers = resolve_workers(translator_.workers);
  settings.search.scores = format_.format == OutputFormat::kJson || translator_.search.n_best > 1 ||
                           translator_.details.tokens;
  LineReader reader(input_);
  const NextConstraints constraints = constraints_.open(reader);
  const Translator translator(std::vector<std::filesystem::path>(models_.begin(), models_.end()),
                              settings);
  Output output(output_);
  const bool typed = input_ == "-" && isatty(STDIN_FILENO) != 0;
  const bool seen = output_ == "-" && isatty(STDOUT_FILENO) != 0;
  if (typed) logger().info("type a line to translate; Ctrl-D ends");
  const Prompt prompt(output, typed && seen);
  // Not over the translations, where they go to the terminal as well.
  std::optional<StatusLine> status;
  if (!seen) status.emplace();

  const auto start = Clock::now();
  auto drawn = start;
  int64_t lines = 0;
  const auto sink = [&](const Translation& translation) {
    write(output, lines++, translation);
    prompt.again();
    if (!status || Clock::now() - drawn < std::chrono::milliseconds(100)) return;
    drawn = Clock::now();
    const std::chrono::duration<double> passed = drawn - start;
    status->show(fmt::format("{} lines, {:.0f} lines/s", lines,
                             static_cast<double>(lines) / passed.count()));
  };
  const TranslationCounts counts = translator.translate_stream(reader, sink, constraints);
  constraints_.finish(reader);
  prompt.end();
  output.finish();
  status.reset();
  const std::chrono::duration<double> passed = Clock::now() - start;
  logger().info("{}, {} in {:.1f} s ({:.0f} tokens/s; {}, {})", counted(counts.lines, "line"),
                counted(counts.target_tokens, "token"), passed.count(),
                static_cast<double>(counts.target_tokens) / passed.count(),
                counted(translator.workers(), "worker"), name_of(translator.precision()));
}

}  // namespace

std::unique_ptr<Command> make_translate_command() { return std::make_unique<TranslateCommand>(); }

}  // namespace attend
