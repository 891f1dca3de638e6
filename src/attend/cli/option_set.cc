#include "attend/cli/option_set.h"

#include <algorithm>

namespace attend {
namespace {

/// The distance of Damerau and Levenshtein, without edits inside a swapped pair.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = last[j - 1] + (a[i - 1] != b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substituted});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) {
    if (!all.empty()) all += ", ";
    all += text;
  }
  return all;
}

}  // namespace

std::string with_underscores(std::string_view name) {
  std::string result(name);
  std::replace(result.begin(), result.end(), '-', '_');
  return result;
}

std::vector<std::string> split_at_commas(const std::vector<std::string>& texts) {
  std::vector<std::string> parts;
  for (const std::string& text : texts) {
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find(',', begin), text.size());
      parts.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return parts;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates,
                         std::string_view otherwise) {
  const std::string* best = nullptr;
  size_t least = std::max<size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(name, candidate);
    if (distance < least) {
      least = distance;
      best = &candidate;
    }
  }
  return best ? fmt::format("; did you mean \"{}\"?", *best) : fmt::format("; {}", otherwise);
}

std::string Option::flag() const {
  std::string result = "--" + name;
  std::replace(result.begin(), result.end(), '_', '-');
  return result;
}

std::string Option::negative_flag() const { return fmt::format("--no{}", flag().substr(1)); }

std::string Option::value_text() const {
  const std::string text = joined(get());
  return text.empty() ? "none" : text;
}

Option& Option::then(std::function<void()> action) {
  set = [inner = std::move(set), after = std::move(action)](const auto& texts) {
    inner(texts);
    after();
  };
  return *this;
}

Option& OptionSet::add_option(const std::string& name, const std::string& help) {
  Option& option = options_.emplace_back();
  option.name = name;
  option.help = help;
  option.group = group_;
  return option;
}

const Option* OptionSet::find(std::string_view name) const {
  const std::string wanted = with_underscores(name);
  for (const Option& option : options_) {
    if (option.name == wanted) return &option;
  }
  return nullptr;
}

std::string OptionSet::suggestion(std::string_view name) const {
  std::vector<std::string> names;
  for (const Option& option : options_) names.push_back(option.name);
  return did_you_mean(with_underscores(name), names, "--help lists all");
}

void OptionSet::apply_one(const Assignment& assignment) const {
  const Option& option = *find(assignment.name);
  if (!option.is_list && assignment.values.size() != 1) {
    fail_usage("{}: found {} values ({}), expected one", assignment.origin,
               assignment.values.size(), joined(assignment.values));
  }
  try {
    option.set(assignment.values);
  } catch (const UsageError& error) {
    throw UsageError(assignment.origin + ": " + error.what());
  }
}

void OptionSet::apply(const std::vector<Assignments>& sources) const {
  for (const Assignments& source : sources) {
    for (const Assignment& assignment : source) {
      if (find(assignment.name)) continue;
      fail_usage("{}: there is no such option{}", assignment.origin, suggestion(assignment.name));
    }
  }
  for (const Option& option : options_) {
    if (!option.is_first) continue;
    const Assignment* chosen = nullptr;
    for (const Assignments& source : sources) {
      for (const Assignment& each : source) {
        if (find(each.name) == &option) chosen = &each;
      }
    }
    if (chosen) apply_one(*chosen);
  }
  for (const Assignments& source : sources) {
    for (const Option& option : options_) {
      if (option.is_first) continue;
      for (const Assignment& each : source) {
        if (find(each.name) == &option) apply_one(each);
      }
    }
  }
}

std::vector<std::string> OptionSet::contradictions(const OptionSet& recorded) const {
  std::vector<std::string> lines;
  for (const Option& option : options_) {
    if (option.may_change || option.is_shorthand) continue;
    const Option* then = recorded.find(option.name);
    if (then->get() == option.get()) continue;
    lines.push_back(fmt::format("{}: {} in the run, {} asked for", option.name, then->value_text(),
                                option.value_text()));
  }
  return lines;
}

std::string OptionSet::quality_summary() const {
  std::vector<std::string> parts;
  for (const Option& option : options_) {
    if (option.changes_quality) parts.push_back(option.name + " " + option.value_text());
  }
  return joined(parts);
}

}  // namespace attend
