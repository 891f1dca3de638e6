#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attend/cli/option_set.h"

namespace attend {

class RankSession;  // cli/ranks.h

/// One subcommand: what it can be told and what it does.
class Command {
 public:
  Command() = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  virtual ~Command() = default;

  /// "train", "tokenizer encode".
  virtual std::string_view name() const = 0;
  /// One line.
  virtual std::string_view summary() const = 0;
  /// Paragraphs after the options in the help text: formats, examples. May be empty.
  virtual std::string_view details() const { return ""; }
  /// Adds the options, over members of this object.
  virtual void define(OptionSet& options) = 0;
  /// Sets the options from what the config file and the flags say. A command with other sources or
  /// checks across options overrides it. It runs before --dump-config prints.
  virtual void resolve(const OptionSet& options, const Assignments& config,
                       const Assignments& flags);
  /// Throws UsageError where an option is missing that the job cannot do without.
  virtual void require() const {}
  /// Whether the ranks that mpirun starts do this job together; else each does all of it.
  virtual bool works_in_ranks() const { return false; }
  /// The ranks that this one leads; it is called before anything else where there are any.
  virtual void lead(RankSession& /*ranks*/) {}
  /// The job. Throws UsageError for a wrong call and Error for a job that failed.
  virtual void run(const OptionSet& options) = 0;
};

/// All commands in the order of the help text.
std::vector<std::unique_ptr<Command>> make_commands();

std::unique_ptr<Command> make_train_command();
std::unique_ptr<Command> make_sweep_command();
std::unique_ptr<Command> make_translate_command();
std::unique_ptr<Command> make_score_command();
std::unique_ptr<Command> make_evaluate_command();
std::unique_ptr<Command> make_tokenizer_train_command();
std::unique_ptr<Command> make_tokenizer_encode_command();
std::unique_ptr<Command> make_tokenizer_decode_command();
std::unique_ptr<Command> make_average_command();
std::unique_ptr<Command> make_convert_command();
std::unique_ptr<Command> make_shortlist_command();
std::unique_ptr<Command> make_inspect_command();
std::unique_ptr<Command> make_report_command();
std::unique_ptr<Command> make_bench_train_command();
std::unique_ptr<Command> make_bench_translate_command();
std::unique_ptr<Command> make_bench_kernels_command();

/// What the command line asks of one command.
struct Call {
  Assignments flags;
  std::string config;        ///< path of --config, or empty
  bool dump_config = false;  ///< --dump-config
  bool quiet = false;        ///< --quiet
  bool help = false;         ///< --help
};

/// Reads flags with CLI11. Throws UsageError naming the flag and, where it is unknown, the nearest.
Call parse_flags(const std::vector<std::string>& arguments, const Command& command,
                 const OptionSet& options);

/// `attend COMMAND --help`.
std::string help_of(const Command& command, const OptionSet& options);
/// `attend --help`.
std::string overview(const std::vector<std::unique_ptr<Command>>& commands);
/// docs/options.md: every option of every command.
std::string options_document(const std::vector<std::unique_ptr<Command>>& commands);

/// Runs one command. Throws UsageError and Error.
void run_command(Command& command, const std::vector<std::string>& arguments);
/// Calls `work`; what it throws is logged as an error and gives the exit status.
int exit_status_of(const std::function<void()>& work);

/// The whole command without its name: runs it and gives the exit status. 0: done, 1: the job
/// failed, 2: a wrong call. Results go to stdout, errors and progress to stderr.
int run_attend(const std::vector<std::string>& arguments);

}  // namespace attend
