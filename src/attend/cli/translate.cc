#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>

#include "attend/base/error.h"
#include "attend/base/log.h"
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
           "with natural logarithms and alpha the\nlength penalty.\n\n"
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
};

void TranslateCommand::write(Output& output, int64_t index, const Translation& translation) const {
  if (translator_.search.n_best == 1) {
    output.write_line(translation.text());
  } else {
    for (const Alternative& each : translation.alternatives) {
      output.write_line(fmt::format("{} ||| {} ||| {:.6f}", index, each.text, each.score));
    }
  }
  output.flush();
}

void TranslateCommand::run(const OptionSet&) {
  TranslatorOptions settings = translator_;
  settings.workers = resolve_workers(translator_.workers);
  LineReader reader(input_);
  const NextConstraints constraints = constraints_.open(reader);
  const Translator translator(std::vector<std::filesystem::path>(models_.begin(), models_.end()),
                              settings);
  Output output(output_);
  if (input_ == "-" && isatty(STDIN_FILENO) != 0) {
    logger().info("type a line to translate; Ctrl-D ends");
  }
  // Not over the translations, where they go to the terminal as well.
  std::optional<StatusLine> status;
  if (output_ != "-" || isatty(STDOUT_FILENO) == 0) status.emplace();

  const auto start = Clock::now();
  auto drawn = start;
  int64_t lines = 0;
  const auto sink = [&](const Translation& translation) {
    write(output, lines++, translation);
    if (!status || Clock::now() - drawn < std::chrono::milliseconds(100)) return;
    drawn = Clock::now();
    const std::chrono::duration<double> passed = drawn - start;
    status->show(fmt::format("{} lines, {:.0f} lines/s", lines,
                             static_cast<double>(lines) / passed.count()));
  };
  const TranslationCounts counts = translator.translate_stream(reader, sink, constraints);
  constraints_.finish(reader);
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
