#include "attend/cli/sweep_file.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <yaml-cpp/yaml.h>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/cli/config_file.h"
#include "attend/cli/train_options.h"

namespace attend {
namespace {

constexpr const char* kKeys = "config, base and rows";
constexpr const char* kRows = "\"rows:\" with a name and its options a line, as in a: {heads: 1}";

/// Control characters would move the cursor, or end the message.
std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return (c >= 0 && c < ' ') || c == 127; }, '?');
  return text;
}

void check_row_name(const std::string& name, const std::string& where) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-";
  const bool good =
      !name.empty() && name.front() != '.' && name.find_first_not_of(kAllowed) == std::string::npos;
  if (!good) {
    fail_usage(
        "{}: a row cannot be named \"{}\": its name is that of its folder; expected letters, "
        "digits and . _ + -, no dot in front",
        where, printable(name));
  }
  for (const char* taken : {kSweepTokenizers, kSweepCache, kSweepTableMarkdown, kSweepTableTsv}) {
    if (name != taken) continue;
    fail_usage(
        "{}: a row cannot be named \"{}\", as what all rows share in --run is; choose another name",
        where, name);
  }
}

std::string describe(const Assignments& changes) {
  std::string text;
  for (const Assignment& change : changes) {
    text += (text.empty() ? "" : ", ") + change.name;
    for (const std::string& value : change.values) text += " " + value;
  }
  return text;
}

class SweepReader {
 public:
  SweepReader(std::string path, std::string folder)
      : path_(std::move(path)), folder_(std::move(folder)) {
    define_train_options(names_, unused_);
  }

  std::deque<SweepRow> read(const Assignments& given) {
    const YAML::Node root = document_of(read_config_text(path_, "the sweep"), path_);
    if (!root.IsMap()) fail_usage("{}: expected {}", path_, kKeys);
    check_keys(root);
    if (const YAML::Node config = root["config"]) sources_.push_back(recipe(config));
    if (const YAML::Node base = root["base"]) {
      sources_.push_back(assignments_of(base, path_, &names_));
      refuse_options_of_sweep(sources_.back());
    }
    sources_.push_back(given);
    const YAML::Node rows = root["rows"];
    if (!rows || rows.IsNull() || rows.size() == 0) {
      fail_usage("{}: there are no rows; expected {}", path_, kRows);
    }
    if (!rows.IsMap()) fail_usage("{}: the rows have no names; expected {}", place(rows), kRows);
    for (const auto& entry : rows) add_row(entry.first, entry.second);
    return std::move(rows_);
  }

 private:
  std::string place(const YAML::Node& node) const {
    return fmt::format("{}:{}", path_, node.Mark().line + 1);
  }

  void check_keys(const YAML::Node& root) const {
    std::set<std::string> seen;
    for (const auto& entry : root) {
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "?";
      if (key != "config" && key != "base" && key != "rows") {
        fail_usage("{}: found \"{}\", expected {}", place(entry.first), key, kKeys);
      }
      if (!seen.insert(key).second) fail_usage("{}: {} is given twice", place(entry.first), key);
    }
  }

  Assignments recipe(const YAML::Node& config) const {
    if (!config.IsScalar()) {
      fail_usage("{}: config: expected the name of a recipe", place(config));
    }
    const Path file = Path(path_).parent_path() / config.Scalar();
    return parse_config(read_config_text(file.string(), place(config) + ": config"), file.string(),
                        names_);
  }

  static void refuse_options_of_sweep(const Assignments& assignments) {
    for (const Assignment& each : assignments) {
      if (each.name == "run") {
        fail_usage("{}: the folders of a sweep follow from --run and the rows' names", each.origin);
      }
      if (each.name == "dry_run") {
        fail_usage("{}: a sweep is tried as a whole: give the flag --dry-run instead", each.origin);
      }
    }
  }

  void add_row(const YAML::Node& key, const YAML::Node& value) {
    const std::string where = place(key);
    if (!key.IsScalar()) fail_usage("{}: expected the name of a row", where);
    check_row_name(key.Scalar(), where);
    if (!seen_.insert(key.Scalar()).second) {
      fail_usage("{}: the row {} is there twice", where, key.Scalar());
    }
    SweepRow& row = rows_.emplace_back();
    row.name = key.Scalar();
    row.changes = assignments_of(value, path_, &names_);
    refuse_options_of_sweep(row.changes);
    row.differs = describe(row.changes);
    define_train_options(row.options, row.train);
    std::vector<Assignments> sources = sources_;
    sources.push_back(row.changes);
    row.options.apply(sources);
    row.train.run = (Path(folder_) / row.name).string();
    row.train.dry_run = false;  // a recipe may say so of its own run
    if (!row.train.tensorboard.empty()) {
      row.train.tensorboard = (Path(row.train.tensorboard) / row.name).string();
    }
    try {
      row.train.validate();
    } catch (const UsageError& error) {
      fail_usage("{}: row {}: {}", where, row.name, error.what());
    }
  }

  std::string path_;
  std::string folder_;
  TrainOptions unused_;
  OptionSet names_;
  std::vector<Assignments> sources_;  ///< of all rows, a later one over an earlier one
  std::set<std::string> seen_;
  std::deque<SweepRow> rows_;
};

}  // namespace

std::deque<SweepRow> read_sweep_file(const std::string& path, const Assignments& given,
                                     const std::string& folder) {
  return SweepReader(path, folder).read(given);
}

}  // namespace attend
