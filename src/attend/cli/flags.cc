#include <algorithm>
#include <map>

#include <CLI/CLI.hpp>

#include "attend/base/error.h"
#include "attend/cli/command.h"

namespace attend {
namespace {

/// More would make CLI11 take one value a flag only.
constexpr int kMostListed = 1 << 20;

bool is_flag_like(const std::string& argument) {
  return argument.size() > 2 && argument.starts_with("--");
}

/// What CLI11 is to look for: "--tokenizer" or "--x,!--no-x".
std::string cli11_names(const Option& option) {
  return option.flag() + (option.is_flag ? ",!" + option.negative_flag() : "");
}

CLI::Option* declare(CLI::App& app, const Option& option) {
  if (option.is_flag)
    return app.add_flag(cli11_names(option))->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  CLI::Option* declared = app.add_option(cli11_names(option));
  declared->type_size(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  declared->expected(1, option.is_list ? kMostListed : 1);
  return declared;
}

/// CLI11 takes whatever follows an option as its value, another flag too, and overlooks an empty
/// value after "=". Both are mistakes, and are told.
void check_values(const std::vector<std::string>& arguments, const OptionSet& options) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") return;
    if (!is_flag_like(argument)) continue;
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    if (equals + 1 == argument.size()) {
      fail_usage("{} has no value after \"=\"; write {} \"\" for an empty one", name, name);
    }
    const Option* const option = options.find(name.substr(2));
    const bool takes_value = name == "--config" || (option && !option->is_flag);
    if (!takes_value || equals != std::string::npos) continue;
    const bool missing =
        i + 1 == arguments.size() || (is_flag_like(arguments[i + 1]) &&
                                      arguments[i + 1].find_first_of(" \n") == std::string::npos);
    if (missing) {
      fail_usage("{} needs a value{}", name,
                 i + 1 == arguments.size() ? "" : "; found the flag " + arguments[i + 1]);
    }
  }
}

[[noreturn]] void fail_on_unknown(const std::string& argument, const Command& command,
                                  const OptionSet& options) {
  const std::string flag = argument.substr(0, argument.find('='));
  std::vector<std::string> known = {"--config", "--dump-config", "--quiet", "--help"};
  for (const Option& option : options.options()) {
    known.push_back(option.flag());
    if (option.is_flag) known.push_back(option.negative_flag());
  }
  fail_usage("attend {} has no option {}{}", command.name(), flag,
             did_you_mean(flag, known, fmt::format("attend {} --help lists all", command.name())));
}

/// What stands on the command line without a flag belongs to the option that allows it.
std::vector<std::string> positional_values(const std::vector<std::string>& extras,
                                           const Command& command, const OptionSet& options) {
  const bool allowed = std::any_of(options.options().begin(), options.options().end(),
                                   [](const Option& option) { return option.is_positional; });
  std::vector<std::string> values;
  bool flags_ended = false;
  for (const std::string& extra : extras) {
    if (!flags_ended && extra == "--") {
      flags_ended = true;
      continue;
    }
    if (!flags_ended && extra.size() > 1 && extra[0] == '-') {
      fail_on_unknown(extra, command, options);
    }
    if (!allowed) {
      fail_usage("found the argument \"{}\", which attend {} does not take; see attend {} --help",
                 extra, command.name(), command.name());
    }
    values.push_back(extra);
  }
  return values;
}

void add_assignment(Call& call, const Option& option, const CLI::Option& declared,
                    const std::vector<std::string>& positional) {
  std::vector<std::string> values;
  if (declared.count() > 0) values = declared.results();
  if (option.is_flag && !values.empty()) values = {values.back()};
  if (option.is_positional) values.insert(values.end(), positional.begin(), positional.end());
  if (values.empty()) return;
  if (!option.is_list && values.size() > 1) {
    fail_usage("{} is given twice: \"{}\" and \"{}\"", option.flag(), values[0], values[1]);
  }
  call.flags.push_back({option.name, values, option.flag()});
}

}  // namespace

Call parse_flags(const std::vector<std::string>& arguments, const Command& command,
                 const OptionSet& options) {
  check_values(arguments, options);
  // An App of its own, not a CLI11 subcommand: those take a file name "train" for a subcommand, and
  // ignore set_config without a word. The config file is read by read_config.
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  Call call;
  app.add_flag("-h,--help", call.help);
  app.add_flag("--quiet", call.quiet);
  app.add_flag("--dump-config", call.dump_config);
  std::vector<std::string> configs;
  app.add_option("--config", configs)
      ->type_size(1)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  std::map<const Option*, const CLI::Option*> declared;
  for (const Option& option : options.options()) declared[&option] = declare(app, option);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  if (call.help) return call;
  if (configs.size() > 1) {
    fail_usage("--config is given twice: \"{}\" and \"{}\"", configs[0], configs[1]);
  }
  if (!configs.empty()) call.config = configs[0];
  const std::vector<std::string> positional = positional_values(app.remaining(), command, options);
  for (const Option& option : options.options()) {
    add_assignment(call, option, *declared.at(&option), positional);
  }
  return call;
}

}  // namespace attend
