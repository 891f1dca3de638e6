#include "attend/cli/command.h"

#include <exception>
#include <new>
#include <system_error>

#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/base/version.h"
#include "attend/cli/config_file.h"
#include "attend/cli/output.h"
#include "attend/cli/ranks.h"

namespace attend {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kWrongCall = 2;

/// How many of the first arguments are the name of `command`; 0 where they are not.
size_t words_matched(const Command& command, const std::vector<std::string>& arguments) {
  std::string given;
  for (size_t words = 1; words <= arguments.size() && words <= 2; ++words) {
    given += (words > 1 ? " " : "") + arguments[words - 1];
    if (given == command.name()) return words;
  }
  return 0;
}

/// "tokenizer train, tokenizer encode" for "tokenizer"; empty for what is no group.
std::string members_of(const std::string& group, const std::vector<std::string>& names) {
  std::string members;
  for (const std::string& name : names) {
    if (name.starts_with(group + " ")) members += (members.empty() ? "" : ", ") + name;
  }
  return members;
}

[[noreturn]] void fail_on_command(const std::vector<std::string>& names,
                                  const std::vector<std::string>& arguments) {
  std::string given = arguments[0];
  if (given.starts_with("-")) fail_usage("{} stands before the command; write it after", given);
  const std::string members = members_of(given, names);
  if (!members.empty()) {
    if (arguments.size() == 1 || arguments[1].starts_with("-")) {
      fail_usage("attend {} is several commands: {}", given, members);
    }
    given += " " + arguments[1];
  }
  fail_usage("there is no command \"{}\"{}", given,
             did_you_mean(given, names, "attend --help lists all"));
}

int dispatch(const std::vector<std::string>& arguments) {
  const auto commands = make_commands();
  const std::string first = arguments.empty() ? "--help" : arguments[0];
  std::vector<std::string> names;
  std::string text;
  if (first == "--help" || first == "-h" || first == "help") text = overview(commands);
  if (first == "--version") text = fmt::format("attend {}\n", kVersion);
  if (first == "docs-options") text = options_document(commands);
  if (!text.empty()) {
    print(text);
    return kDone;
  }
  for (const auto& command : commands) {
    names.emplace_back(command->name());
    const size_t words = words_matched(*command, arguments);
    if (words == 0) continue;
    const auto rest = arguments.begin() + static_cast<std::ptrdiff_t>(words);
    if (command->works_in_ranks()) return run_in_ranks(*command, {rest, arguments.end()});
    run_command(*command, {rest, arguments.end()});
    return kDone;
  }
  fail_on_command(names, arguments);
}

}  // namespace

void run_command(Command& command, const std::vector<std::string>& arguments) {
  OptionSet options;
  command.define(options);
  const Call call = parse_flags(arguments, command, options);
  if (call.help) return print(help_of(command, options));
  if (call.quiet) set_log_level(LogLevel::kQuiet);
  const Assignments config =
      call.config.empty() ? Assignments{} : read_config(call.config, options);
  command.resolve(options, config, call.flags);
  if (call.dump_config) return print(to_yaml(options));
  command.require();
  const std::string quality = options.quality_summary();
  if (!quality.empty()) logger().info("attend {}: {}", command.name(), quality);
  command.run(options);
}

void Command::resolve(const OptionSet& options, const Assignments& config,
                      const Assignments& flags) {
  options.apply({config, flags});
}

std::vector<std::unique_ptr<Command>> make_commands() {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(make_train_command());
  commands.push_back(make_sweep_command());
  commands.push_back(make_translate_command());
  commands.push_back(make_score_command());
  commands.push_back(make_evaluate_command());
  commands.push_back(make_tokenizer_train_command());
  commands.push_back(make_tokenizer_encode_command());
  commands.push_back(make_tokenizer_decode_command());
  commands.push_back(make_average_command());
  commands.push_back(make_convert_command());
  commands.push_back(make_shortlist_command());
  commands.push_back(make_inspect_command());
  commands.push_back(make_report_command());
  commands.push_back(make_bench_train_command());
  commands.push_back(make_bench_translate_command());
  commands.push_back(make_bench_kernels_command());
  return commands;
}

int exit_status_of(const std::function<void()>& work) {
  try {
    work();
    return kDone;
  } catch (const UsageError& error) {
    logger().error("{}", error.what());
    return kWrongCall;
  } catch (const std::bad_alloc&) {
    logger().error("out of memory");
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) {
      logger().error(
          "cannot start a thread: {}; raise the limits of memory and processes (ulimit -v, ulimit "
          "-u), or use fewer threads",
          error.code().message());
    } else {
      logger().error("{}", error.what());
    }
  } catch (const std::exception& error) {
    logger().error("{}", error.what());
  }
  return kFailed;
}

int run_attend(const std::vector<std::string>& arguments) {
  int status = kDone;
  const int failed = exit_status_of([&] { status = dispatch(arguments); });
  return failed != kDone ? failed : status;
}

}  // namespace attend
