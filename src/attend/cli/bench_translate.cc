#include "attend/base/error.h"
#include "attend/cli/command.h"
#include "attend/cli/output.h"
#include "attend/cli/translator_options.h"
#include "attend/data/text.h"
#include "attend/search/bench.h"
#include "attend/train/bench.h"

namespace attend {
namespace {

class BenchTranslateCommand : public Command {
 public:
  std::string_view name() const override { return "bench translate"; }
  std::string_view summary() const override {
    return "Measure how fast a model translates a text: throughput, latency, memory, time by op";
  }
  std::string_view details() const override {
    return "The text is translated whole once to warm up and then --repetitions times, then line "
           "by line, each\nwhen the one before is done. Reading the text and loading the model do "
           "not count.";
  }

  void define(OptionSet& options) override {
    options.group("Text");
    options.add("model", model_, "A model folder, or the folder of a run")
        .positional()
        .metavar("DIR");
    options.add("input", input_, "Text to translate; .gz or not; - is standard input")
        .metavar("FILE");
    options.add("copies", bench_.copies, "How often over the text is translated at once");
    options.add("repetitions", bench_.repetitions, "Of which the median counts");
    options.add("singles", bench_.singles, "Lines that are also translated one by one, at most");
    define_translator_options(options, bench_.translator);
    options.add("json", json_, "Print JSON for machines");
  }

  void resolve(const OptionSet& options, const Assignments& config,
               const Assignments& flags) override {
    Command::resolve(options, config, flags);
    bench_.validate();
  }

  void require() const override {
    if (model_.empty()) {
      fail_usage("--model DIR is missing: a model folder, or the folder of a run");
    }
  }

  void run(const OptionSet&) override {
    TranslateBenchOptions settings = bench_;
    settings.translator.workers = resolve_workers(bench_.translator.workers);
    const TranslateBenchResult result = bench_translate(model_, read_lines(input_), settings);
    print(json_ ? to_json(result) + "\n" : format(result));
  }

 private:
  std::string model_;
  std::string input_ = "-";
  TranslateBenchOptions bench_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_bench_translate_command() {
  return std::make_unique<BenchTranslateCommand>();
}

}  // namespace attend
