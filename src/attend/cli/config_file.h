#pragma once

#include <string>
#include <string_view>

#include "attend/cli/option_set.h"

namespace YAML {  // NOLINT(readability-identifier-naming): theirs
class Node;
}

namespace attend {

/// Reads a YAML file of `option: value` and `option: [value, value]`. Nothing is applied. Throws
/// UsageError naming the file and line: it cannot be read, is not YAML, is not such a list, names
/// an option that `options` lacks (with the nearest one, if one is near) or names one twice.
Assignments read_config(const std::string& path, const OptionSet& options);

/// The same from YAML text; `name` is for errors.
Assignments parse_config(const std::string& text, const std::string& name,
                         const OptionSet& options);

/// The same from YAML text of any version of attend: any name is an option's.
Assignments parse_any_config(const std::string& text, const std::string& name);

/// The one document of a YAML text, null where it is empty. Throws UsageError.
YAML::Node document_of(const std::string& text, const std::string& name);
/// parse_config of a part of a document; options: those that there are, null for any.
Assignments assignments_of(const YAML::Node& root, const std::string& name,
                           const OptionSet* options);
/// A configuration file as text. Throws UsageError beginning with `option`, which names it.
std::string read_config_text(const std::string& path, std::string_view option);

/// All options with their present values as YAML that read_config takes: it reproduces the run.
std::string to_yaml(const OptionSet& options);

}  // namespace attend
