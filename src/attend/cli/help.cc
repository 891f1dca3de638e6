#include <algorithm>

#include "attend/base/version.h"
#include "attend/cli/command.h"

namespace attend {
namespace {

constexpr size_t kWidth = 100;
constexpr size_t kColumn = 32;  // where help texts begin

/// Breaks `text` at spaces into lines that end before kWidth and begin at `indent`.
std::string wrapped(std::string_view text, size_t indent) {
  std::string result;
  size_t column = indent;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool first = column == indent;
    if (!first && column + 1 + word.size() > kWidth) {
      result += '\n';
      result.append(indent, ' ');
      column = indent;
    } else if (!first) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result;
}

std::string help_line(const std::string& left, const std::string& text) {
  std::string line = "  " + left;
  if (line.size() + 2 > kColumn) {
    line += '\n';
    line.append(kColumn, ' ');
  } else {
    line.resize(kColumn, ' ');
  }
  return line + wrapped(text, kColumn) + "\n";
}

std::string left_of(const Option& option) {
  if (option.is_flag) {
    const bool on = option.default_text == "true";
    return on ? option.negative_flag() : option.flag();
  }
  return option.flag() + " " + option.type + (option.is_list ? "..." : "");
}

std::string help_text(const Option& option) {
  std::string text = option.help;
  if (option.is_flag && option.default_text == "true") return option.help_off;
  if (!option.is_flag && !option.default_text.empty()) {
    text += " (default: " + option.default_text + ")";
  }
  return text;
}

std::string usage_of(const Command& command, const OptionSet& options) {
  std::string usage = fmt::format("attend {} [options]", command.name());
  for (const Option& option : options.options()) {
    if (!option.is_positional) continue;
    std::string name = option.name;
    std::transform(name.begin(), name.end(), name.begin(), ::toupper);
    usage += " " + name + (option.is_list ? "..." : "");
  }
  return usage;
}

/// The options that every command has.
struct CommonOption {
  const char* flag;
  const char* help;
};
constexpr CommonOption kCommonOptions[] = {
    {"--config FILE", "Read options from a YAML file; flags override it"},
    {"--dump-config", "Print all options as YAML, as they are resolved, and exit"},
    {"--quiet", "Print only results and errors"},
    {"-h, --help", "Print this help and exit"},
};

std::string escaped_for_table(std::string_view text) {
  std::string escaped;
  for (const char each : text) {
    if (each == '|') escaped += '\\';
    escaped += each;
  }
  return escaped;
}

/// Paragraphs as Markdown: what is indented, the examples, stands as code.
std::string as_markdown(std::string_view details) {
  std::string text;
  bool code = false;
  while (!details.empty()) {
    const size_t end = std::min(details.find('\n'), details.size());
    const std::string_view line = details.substr(0, end);
    details.remove_prefix(std::min(end + 1, details.size()));
    const bool indented = line.starts_with("  ");
    if (indented && !code) text += '\n';
    code = indented;
    text += fmt::format("{}{}\n", indented ? "  " : "", line);
  }
  return text;
}

std::string document_of(const Command& command, const OptionSet& options) {
  std::string text = fmt::format("\n## attend {}\n\n{}\n\n    {}\n", command.name(),
                                 command.summary(), usage_of(command, options));
  std::string group;
  for (const Option& option : options.options()) {
    if (option.group != group) {
      group = option.group;
      text +=
          fmt::format("\n### {}\n\n| flag | YAML key | default | |\n|---|---|---|---|\n", group);
    }
    const std::string flag = option.flag() + (option.type.empty() ? "" : " " + option.type) +
                             (option.is_list ? "..." : "");
    const std::string key = option.is_shorthand ? "" : "`" + option.name + "`";
    const std::string fallback = option.default_text.empty() ? "" : "`" + option.default_text + "`";
    text += fmt::format("| `{}` | {} | {} | {} |\n", escaped_for_table(flag), key, fallback,
                        escaped_for_table(option.help));
  }
  if (command.details().empty()) return text;
  text += '\n';
  text += as_markdown(command.details());
  return text;
}

}  // namespace

std::string help_of(const Command& command, const OptionSet& options) {
  std::string text =
      fmt::format("Usage: {}\n\n{}\n", usage_of(command, options), wrapped(command.summary(), 0));
  std::string group;
  for (const Option& option : options.options()) {
    if (option.group != group) {
      group = option.group;
      text += "\n" + group + "\n";
    }
    text += help_line(left_of(option), help_text(option));
  }
  text += "\nCommon options\n";
  for (const CommonOption& each : kCommonOptions) text += help_line(each.flag, each.help);
  if (!command.details().empty()) text += fmt::format("\n{}\n", command.details());
  return text;
}

std::string overview(const std::vector<std::unique_ptr<Command>>& commands) {
  std::string text = fmt::format(
      "attend {}: trains Transformers from plain text files and runs them fast.\n\n"
      "Usage: attend COMMAND [options]\n\nCommands\n",
      kVersion);
  for (const auto& command : commands) {
    text += help_line(std::string(command->name()), std::string(command->summary()));
  }
  text +=
      "\nattend COMMAND --help tells a command's options; attend --version the version.\n"
      "\nBegin with\n"
      "  attend train --train-source train.en --train-target train.de \\\n"
      "      --valid-source valid.en --valid-target valid.de --preset tiny --run runs/first\n"
      "  attend translate --model runs/first < test.en > test.out\n"
      "  attend evaluate --reference test.de < test.out\n";
  return text;
}

std::string options_document(const std::vector<std::unique_ptr<Command>>& commands) {
  std::string text =
      "# Options\n\n"
      "Written by `attend docs-options`; do not edit.\n\n"
      "Every option is a flag and, with the same name, a key of the YAML file that `--config` "
      "names.\nFlags override the file, and the file overrides the defaults. Lists take several "
      "values\n(`--reference a b`, `reference: [a, b]`). A flag `--x` without a value has the "
      "opposite `--no-x`;\nin YAML it is `x: true` or `x: false`. Whole numbers may end in K, M or "
      "G (10^3, 10^6, 10^9).\nAn AMOUNT is `10e` (epochs), `5Ku` (updates), `2Gt` (target tokens), "
      "`45s`, `30m`, `2h` or `none`.\n\n"
      "Every command has these as well:\n\n| flag | |\n|---|---|\n";
  for (const CommonOption& each : kCommonOptions) {
    text += fmt::format("| `{}` | {} |\n", each.flag, each.help);
  }
  for (const auto& command : commands) {
    OptionSet options;
    command->define(options);
    text += document_of(*command, options);
  }
  return text;
}

}  // namespace attend
