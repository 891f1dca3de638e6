#include "attend/cli/config_file.h"

#include <set>

#include <yaml-cpp/yaml.h>

#include "attend/base/error.h"
#include "attend/base/files.h"

namespace attend {
namespace {

constexpr int64_t kMostConfigBytes = int64_t{16} << 20;

std::string place(const std::string& name, const YAML::Mark& mark) {
  return mark.is_null() ? name : fmt::format("{}:{}", name, mark.line + 1);
}

std::vector<std::string> values_of(const YAML::Node& node, const std::string& origin) {
  std::vector<std::string> values;
  if (node.IsScalar()) {
    values.push_back(node.Scalar());
  } else if (node.IsSequence()) {
    for (const YAML::Node& each : node) {
      if (!each.IsScalar()) fail_usage("{}: expected a value or a list of values", origin);
      values.push_back(each.Scalar());
    }
  } else if (node.IsNull()) {
    fail_usage("{}: there is no value; write \"\" for an empty one", origin);
  } else {
    fail_usage("{}: found a mapping, expected a value or a list of values", origin);
  }
  return values;
}

/// Text that yaml-cpp quotes where YAML wants it, as one word or string.
std::string scalar(const std::string& text, bool quoted) {
  YAML::Emitter emitter;
  if (quoted) emitter << YAML::DoubleQuoted;
  emitter << text;
  return emitter.c_str();
}

}  // namespace

Assignments assignments_of(const YAML::Node& root, const std::string& name,
                           const OptionSet* options) {
  Assignments assignments;
  if (root.IsNull()) return assignments;
  if (!root.IsMap()) {
    fail_usage("{}: expected lines of the form \"option: value\"", place(name, root.Mark()));
  }
  std::set<std::string> seen;
  for (const auto& entry : root) {
    const std::string where = place(name, entry.first.Mark());
    if (!entry.first.IsScalar()) fail_usage("{}: expected the name of an option", where);
    std::string key = entry.first.Scalar();
    if (options != nullptr) {
      const Option* const option = options->find(key);
      if (!option) {
        fail_usage("{}: there is no option \"{}\"{}", where, key, options->suggestion(key));
      }
      key = option->name;
    }
    if (!seen.insert(key).second) fail_usage("{}: {} is given twice", where, key);
    const std::string origin = fmt::format("{}: {}", where, key);
    assignments.push_back({key, values_of(entry.second, origin), origin});
  }
  return assignments;
}

YAML::Node document_of(const std::string& text, const std::string& name) {
  YAML::Node root;
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1) fail_usage("{}: expected one YAML document", name);
    if (!documents.empty()) root = documents[0];
  } catch (const YAML::Exception& error) {
    fail_usage("{}: not YAML: {}", place(name, error.mark), error.msg);
  }
  return root;
}

Assignments parse_config(const std::string& text, const std::string& name,
                         const OptionSet& options) {
  return assignments_of(document_of(text, name), name, &options);
}

Assignments parse_any_config(const std::string& text, const std::string& name) {
  return assignments_of(document_of(text, name), name, nullptr);
}

std::string read_config_text(const std::string& path, std::string_view option) {
  try {
    return read_file(path, kMostConfigBytes);
  } catch (const Error& error) {
    fail_usage("{}: {}", option, error.what());
  }
}

Assignments read_config(const std::string& path, const OptionSet& options) {
  return parse_config(read_config_text(path, "--config"), path, options);
}

std::string to_yaml(const OptionSet& options) {
  std::string yaml;
  std::string group;
  for (const Option& option : options.options()) {
    if (option.is_shorthand) continue;
    if (option.group != group) {
      group = option.group;
      yaml += fmt::format("{}# {}\n", yaml.empty() ? "" : "\n", group);
    }
    const bool is_text = option.type != "N" && option.type != "NUMBER" && !option.is_flag;
    std::string value;
    for (const std::string& each : option.get()) {
      value += (value.empty() ? "" : ", ") + scalar(each, is_text);
    }
    yaml += fmt::format("{}: {}\n", option.name, option.is_list ? "[" + value + "]" : value);
  }
  return yaml;
}

}  // namespace attend
