#include "attend/report/report.h"

#include <algorithm>

#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/cli/command.h"
#include "attend/cli/config_file.h"
#include "attend/cli/output.h"
#include "attend/cli/train_options.h"
#include "attend/io/model_directory.h"
#include "attend/train/bench.h"
#include "attend/train/run_folder.h"

namespace attend {
namespace {

constexpr int64_t kMostRecipeBytes = int64_t{16} << 20;

std::string joined(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : ", ") + value;
  return text;
}

std::string recipe_text(const Path& run) {
  std::error_code error;
  if (!std::filesystem::exists(recipe_path(run), error)) return recipe_of_checkpoints(run);
  return read_file(recipe_path(run), kMostRecipeBytes);
}

/// A run's options, with what they are by default under its preset. Other versions may have others.
std::vector<RecipeOption> read_recipe(const Path& run) {
  const Assignments written = parse_any_config(recipe_text(run), recipe_path(run).string());
  TrainOptions train;
  OptionSet options;
  define_train_options(options, train);
  try {
    Assignments preset_alone = written;
    std::erase_if(preset_alone, [](const Assignment& each) { return each.name != "preset"; });
    options.apply({preset_alone});
  } catch (const UsageError&) {  // a preset that this version does not have
  }
  std::vector<RecipeOption> recipe;
  for (const Assignment& each : written) {
    RecipeOption option{.name = each.name, .value = joined(each.values)};
    option.group = "Others";
    if (const Option* const known = options.find(each.name); known != nullptr) {
      option.group = known->group;
      option.help = known->help;
      option.usual = joined(known->get());
    }
    recipe.push_back(std::move(option));
  }
  return recipe;
}

class ReportCommand : public Command {
 public:
  std::string_view name() const override { return "report"; }
  std::string_view summary() const override {
    return "Show what became of one or several runs, as a page for a browser";
  }
  std::string_view details() const override {
    return "Writes one HTML file that needs no network: learning curves over each other, scores "
           "with "
           "their\nsignatures, sample translations with the attention behind them, recipes and how "
           "they differ.\nRuns may still be training. The validation text is read from where the "
           "recipe says; docs/report.md\nsays more.\n\n"
           "Examples\n"
           "  attend report runs/first\n"
           "  attend report runs/a runs/b --test-source test.en --test-target test.de "
           "--output a-and-b.html";
  }
  void define(OptionSet& options) override;
  void resolve(const OptionSet& options, const Assignments& config,
               const Assignments& flags) override;
  void require() const override;
  void run(const OptionSet& options) override;

 private:
  std::vector<std::string> runs_;
  std::string output_ = "report.html";
  std::string tensorboard_;
  bool lowercase_ = false;
  ReportOptions report_;
};

void ReportCommand::define(OptionSet& options) {
  options.group("Runs");
  options.add("runs", runs_, "The folders of runs").positional().metavar("DIR");
  options.add("output", output_, "The page; - is standard output").metavar("FILE");
  options
      .add("tensorboard", tensorboard_,
           "Also write the runs' logs to event files for TensorBoard, a folder a run in this one")
      .metavar("DIR");
  options.group("Texts");
  options.add("test_source", report_.test_source, "A test text to score all runs on, too")
      .metavar("FILE");
  options.add("test_target", report_.test_target, "Its references").metavar("FILE");
  options
      .add("translate", report_.translate,
           "Translate validation and test text, for scores, samples and attention")
      .off_means("Show the curves and recipes alone, which takes no time");
  options.add("samples", report_.samples,
              "Sentences shown: a third the best, a third the worst, the rest by chance");
  options.add("attention", report_.attention,
              "Sentences of them whose attention is shown, of every layer and head");
  options.add("seed", report_.seed, "Of the sentences taken by chance");
  options.group("Search and scores");
  options.add("beam_size", report_.beam_size, "Of the search; 0 is what the run was validated with")
      .quality();
  options
      .add("length_penalty", report_.length_penalty,
           "Alpha; auto is what the run was validated with")
      .quality();
  options.add("tokenize", report_.bleu.tokenizer, "How BLEU cuts lines into words");
  options
      .add("tokenizer_model", report_.bleu.tokenizer_model,
           "What --tokenize needs: see attend evaluate")
      .metavar("FILE");
  options.add("lowercase", lowercase_, "Ignore case in BLEU and chrF (TER always does)");
  options.group("Speed");
  options.add("workers", report_.workers, "Threads; 0 is one a core");
  options
      .add("precision", report_.precision,
           "Of matrix products; auto is int8 for a converted model, else bfloat16 where that "
           "is faster")
      .quality();
}

void ReportCommand::resolve(const OptionSet& options, const Assignments& config,
                            const Assignments& flags) {
  Command::resolve(options, config, flags);
  report_.bleu.lowercase = lowercase_;
  report_.validate();
}

void ReportCommand::require() const {
  if (runs_.empty()) fail_usage("RUN is missing: the folder of a run, or several");
  names_of({runs_.begin(), runs_.end()});  // refuses a run that is given twice
  std::vector<std::string> read = {report_.test_source, report_.test_target,
                                   report_.bleu.tokenizer_model};
  for (const std::string& run : runs_) {
    for (std::string& file : files_of_model(run)) read.push_back(std::move(file));
    read.push_back((Path(run) / "log.jsonl").string());
    read.push_back(recipe_path(run).string());
  }
  refuse_to_overwrite(output_, read);
}

void ReportCommand::run(const OptionSet&) {
  Output output(output_);  // first: an unwritable one is not found out after all translating
  std::vector<ReportedRun> runs;
  for (const std::string& folder : runs_) {
    ReportedRun& run = runs.emplace_back(ReportedRun{.folder = folder});
    try {
      run.recipe = read_recipe(folder);
    } catch (const std::exception& error) {
      run.recipe_problem = error.what();
    }
  }
  ReportOptions settings = report_;
  settings.workers = resolve_workers(report_.workers);
  if (!tensorboard_.empty()) {
    refuse_unwritable_folder("tensorboard", tensorboard_);
    const std::vector<std::string> names = names_of({runs_.begin(), runs_.end()});
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      write_tensorboard(runs_[i], Path(tensorboard_) / names[i]);
    }
  }
  const std::string page = make_report(runs, settings);
  output.write(page);
  output.finish();
  if (output_ != "-") logger().info("{} ({} KiB)", output_, page.size() >> 10);
}

}  // namespace

std::unique_ptr<Command> make_report_command() { return std::make_unique<ReportCommand>(); }

}  // namespace attend
