#include <algorithm>
#include <deque>
#include <exception>
#include <map>

#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/cli/command.h"
#include "attend/cli/output.h"
#include "attend/cli/sweep_data.h"
#include "attend/cli/sweep_file.h"
#include "attend/cli/sweep_score.h"
#include "attend/cli/sweep_state.h"
#include "attend/cli/sweep_table.h"
#include "attend/cli/train_options.h"
#include "attend/cli/training.h"
#include "attend/data/corpus_reader.h"
#include "attend/train/run_folder.h"

namespace attend {
namespace {

class SweepCommand : public Command {
 public:
  std::string_view name() const override { return "sweep"; }
  std::string_view summary() const override {
    return "Train a model for each row of a table of options, and print the table";
  }
  std::string_view details() const override {
    return "The file says what the rows have in common and what each has of its own:\n\n"
           "  config: recipe.yaml    # where it is given: a recipe, beside this file\n"
           "  base:                  # options of all rows\n"
           "    stop_after: 2000u\n"
           "  rows:\n"
           "    base:\n"
           "    one-head: {heads: 1}\n"
           "    deep: {layers: 8, dropout: 0.2}\n\n"
           "Each row is a run in a folder of its own below --run. The same command goes on with a "
           "sweep that was\nstopped or killed, and tries rows that failed again. Ctrl-C and "
           "SIGTERM "
           "write a checkpoint and stop.\nThe table goes to stdout, and to table.md and table.tsv "
           "in --run.\n\n"
           "Example\n  attend sweep recipes/table3.yaml --run runs/table3 --train-source train.en "
           "\\\n      --train-target train.de --valid-source val.en --valid-target val.de";
  }

  void define(OptionSet& options) override;
  void resolve(const OptionSet& options, const Assignments& config,
               const Assignments& flags) override;
  void require() const override;
  void run(const OptionSet& options) override;

 private:
  /// Before hours are spent on the first of them.
  void check_rows() const;
  /// What goes wrong with a row is its problem alone.
  void train_row(SweepRow& row, const StopSignals& signals);
  void go_on_with(SweepRow& row, const StopSignals& signals);
  std::string needs_of(SweepRow& row) const;
  void share_cache(SweepRow& row) const;
  /// A table of rows that were trained on different text compares nothing.
  void compare_data(const SweepRow& row, const std::string& key);
  void note_problem(const SweepRow& row, const std::string& problem);
  std::vector<SweepFigures> figures() const;
  void write_table() const;

  std::string file_;
  bool show_ = false;
  TestText test_;
  TrainOptions train_;     ///< what flags say
  OptionSet train_names_;  ///< over train_
  std::deque<SweepRow> rows_;
  struct SeenData {
    std::string row;
    std::string train, valid;  ///< fingerprints
  };
  std::map<std::string, SeenData> seen_data_;    ///< by data_key()
  std::map<std::string, std::string> problems_;  ///< by row
};

void SweepCommand::define(OptionSet& options) {
  options.group("Sweep");
  options.add("sweep", file_, "The rows").positional().metavar("FILE");
  options.add("show", show_, "Train nothing: print the table of what there is");
  options.add("test_source", test_.source, "Text that the model of each row translates at its end")
      .metavar("FILE");
  options.add("test_target", test_.target, "Its translation, for BLEU").metavar("FILE");
  // What makes a row what it is stands in the file.
  define_train_options(train_names_, train_);
  for (const Option& option : train_names_.options()) {
    if (option.may_change) options.add(option);
  }
}

void SweepCommand::resolve(const OptionSet& options, const Assignments& config,
                           const Assignments& flags) {
  options.apply({config, flags});
  if (file_.empty()) return;
  Assignments given;
  for (const Assignments& source : {config, flags}) {
    for (const Assignment& each : source) {
      if (train_names_.find(each.name) != nullptr) given.push_back(each);
    }
  }
  rows_ = read_sweep_file(file_, given, train_.run);
}

void SweepCommand::require() const {
  if (file_.empty()) fail_usage("FILE is missing: the rows of the sweep, such as table3.yaml");
  if (train_.run.empty()) fail_usage("--run DIR is missing: the folder of the rows' folders");
  if (test_.source.empty() != test_.target.empty()) {
    fail_usage("test_source and test_target go together; only one of them is given");
  }
  for (const SweepRow& row : rows_) {
    if (!show_ && row.train.train_source.empty() && row.train.train_tsv.empty()) {
      fail_usage(
          "row {}: there is no training data: give --train-source FILE and --train-target FILE, or "
          "--train-tsv FILE",
          row.name);
    }
  }
}

void SweepCommand::check_rows() const {
  if (!test_.source.empty()) read_test_text(test_);
  for (const SweepRow& row : rows_) {
    SweepRowState state;
    try {
      state = state_of_row(row);
    } catch (const Error&) {
      continue;  // a damaged run is its row's problem, and said in its turn
    }
    try {
      if (!state.is_done) check_files(row.train, state.run.has_value());
    } catch (const Error& error) {
      fail("row {}: {}", row.name, error.what());
    }
  }
}

void SweepCommand::note_problem(const SweepRow& row, const std::string& problem) {
  logger().error("row {}: {}", row.name, problem);
  problems_[row.name] = problem;
}

/// Throws Error naming the row.
std::string SweepCommand::needs_of(SweepRow& row) const {
  share_cache(row);
  try {
    return dry_run(row.train);
  } catch (const Error& error) {
    fail("row {}: {}", row.name, error.what());
  }
}

void SweepCommand::share_cache(SweepRow& row) const {
  if (row.train.cache.empty()) row.train.cache = (Path(train_.run) / kSweepCache).string();
}

std::string changed_text(const SweepRowState& state) {
  return fmt::format("its run has other options ({})", state.other_options);
}

void SweepCommand::go_on_with(SweepRow& row, const StopSignals& signals) {
  const SweepRowState state = state_of_row(row);
  if (state.run && !state.other_options.empty()) {
    fail("{}; remove {} to train it anew, or give the row another name", changed_text(state),
         row.train.run);
  }
  if (!state.further.empty()) {
    fail(
        "its run went on to stop_after {}, further than {}; remove {} to train it anew, or ask for "
        "as much",
        state.further, to_string(row.train.stop_after), row.train.run);
  }
  if (state.is_done) return logger().info("row {} is done", row.name);
  logger().info("{}", row.options.quality_summary());
  share_tokenizer(train_.run, row.train, signals.stop());
  share_cache(row);
  run_training(row.train, row.options, signals);
}

void SweepCommand::compare_data(const SweepRow& row, const std::string& key) {
  const std::optional<RunState> state = state_of_run(row.train.run);
  if (!state) return;
  const SeenData& seen = seen_data_
                             .try_emplace(key, SeenData{row.name, state->data_fingerprint,
                                                        state->validation_fingerprint})
                             .first->second;
  if (state->data_fingerprint != seen.train) {
    logger().warn("rows {} and {} were trained on different text: they do not compare", seen.row,
                  row.name);
  }
  if (state->validation_fingerprint != seen.valid) {
    logger().warn("rows {} and {} were validated on different text: they do not compare", seen.row,
                  row.name);
  }
}

void SweepCommand::train_row(SweepRow& row, const StopSignals& signals) {
  const auto number = std::find_if(rows_.begin(), rows_.end(),
                                   [&](const SweepRow& each) { return &each == &row; }) -
                      rows_.begin() + 1;
  logger().info("row {} of {}: {}{}", number, rows_.size(), row.name,
                row.differs.empty() ? "" : " (" + row.differs + ")");
  const std::string key = data_key(row.options);
  try {
    go_on_with(row, signals);
    compare_data(row, key);
    const auto state = state_of_run(row.train.run);
    if (!test_.source.empty() && state && !state->finished.empty()) {
      logger().info("row {}: test BLEU {:.2f}", row.name, test_bleu(row.train, test_));
    }
  } catch (const StoppedReading& stopped) {
    logger().info("{}", stopped.what());
  } catch (const std::exception& error) {
    note_problem(row, error.what());
  }
}

/// Figures of a run with other options are none of this row.
SweepFigures figures_of_row(const SweepRow& row, const TestText& test) {
  const SweepRowState state = state_of_row(row);
  if (!state.other_options.empty()) {
    return {.state = state.run ? changed_text(state) : "not begun"};
  }
  SweepFigures figures = figures_of_run(row.train.run, test);
  if (!state.further.empty()) figures.state = "went on to stop_after " + state.further;
  if (figures.state.empty() && state.run && !state.is_done) {
    figures.state = fmt::format("after {} updates", state.run->done.updates);
  }
  return figures;
}

std::vector<SweepFigures> SweepCommand::figures() const {
  std::vector<SweepFigures> all;
  for (const SweepRow& row : rows_) {
    SweepFigures& figures = all.emplace_back();
    try {
      figures = figures_of_row(row, test_);
    } catch (const std::exception& error) {
      figures.state = failed_text(error.what());
    }
    figures.name = row.name;
    figures.differs = row.differs;
    const auto problem = problems_.find(row.name);
    if (problem != problems_.end()) figures.state = failed_text(problem->second);
  }
  return all;
}

void SweepCommand::write_table() const {
  const std::vector<SweepFigures> all = figures();
  const Path folder = train_.run;
  write_file(folder / kSweepTableMarkdown, markdown_table(all));
  write_file(folder / kSweepTableTsv, tsv_table(all));
  print(aligned_table(all));
}

void SweepCommand::run(const OptionSet&) {
  if (show_) return print(aligned_table(figures()));
  check_rows();
  if (train_.dry_run) {
    for (SweepRow& row : rows_) print(fmt::format("{}\n{}", row.name, needs_of(row)));
    return;
  }
  const RunLock lock(train_.run);  // two sweeps would write one table
  const StopSignals signals;
  for (SweepRow& row : rows_) {
    train_row(row, signals);
    if (signals.stop()) break;
  }
  write_table();
  signals.finish();
  if (problems_.empty()) return;
  std::string names;
  for (const auto& [name, problem] : problems_) names += (names.empty() ? "" : ", ") + name;
  fail("{} of {} rows failed: {}", problems_.size(), rows_.size(), names);
}

}  // namespace

std::unique_ptr<Command> make_sweep_command() { return std::make_unique<SweepCommand>(); }

}  // namespace attend
