#pragma once

#include <string>

#include "attend/cli/option_set.h"

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

/// All options with their present values as YAML that read_config takes: it reproduces the run.
std::string to_yaml(const OptionSet& options);

}  // namespace attend
