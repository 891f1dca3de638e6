#pragma once

#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "attend/cli/option_types.h"

namespace attend {

/// One option: what a flag, a YAML key, the help text, --dump-config and the comparison of a
/// resumed run with its recipe all say about it.
struct Option {
  std::string name;  ///< as in code and YAML: batch_tokens
  std::string help;
  std::string help_off;      ///< of a flag that is on by default: what turning it off means
  std::string group;         ///< the heading that it stands under
  std::string type;          ///< what stands for its value in help texts; empty for a flag
  std::string default_text;  ///< empty where there is nothing to say
  bool is_list = false;
  bool is_flag = false;
  bool is_positional = false;    ///< may also be given without its flag
  bool is_shorthand = false;     ///< sets other options, so it is not dumped or compared
  bool is_first = false;         ///< applied before all others: they override what it sets
  bool changes_quality = false;  ///< printed when a job starts (contract 22)
  bool may_change = false;       ///< a resumed run may have another value (contract 14)
  std::function<void(const std::vector<std::string>&)> set;
  std::function<std::vector<std::string>()> get;

  /// --batch-tokens
  std::string flag() const;
  /// --no-x beside a flag --x, so that a flag can take back what a config file says.
  std::string negative_flag() const;
  /// Its value for people: "4", "a.en, b.en", "none" where it is empty.
  std::string value_text() const;

  Option& positional() { return is_positional = true, *this; }
  Option& shorthand() { return is_shorthand = true, *this; }
  Option& first() { return is_first = true, *this; }
  Option& quality() { return changes_quality = true, *this; }
  Option& changeable() { return may_change = true, *this; }
  Option& metavar(std::string text) { return type = std::move(text), *this; }
  Option& off_means(std::string text) { return help_off = std::move(text), *this; }
  Option& default_is(std::string text) { return default_text = std::move(text), *this; }
  /// Calls `action` each time that the option has been set.
  Option& then(std::function<void()> action);
};

/// What somebody asked of one option, and where: "--batch-tokens" or
/// "recipe.yaml:12: batch_tokens".
struct Assignment {
  std::string name;
  std::vector<std::string> values;
  std::string origin;
};

/// The assignments of one source: the flags, a config file, the recipe of a run.
using Assignments = std::vector<Assignment>;

/// All options of one command. Values live where `add` was told; this knows their names.
class OptionSet {
 public:
  /// Options added from here on stand under this heading.
  void group(std::string heading) { group_ = std::move(heading); }

  /// Defines an option over `value`, whose present content is its default. `value` must outlive
  /// this.
  template <typename T>
  Option& add(const std::string& name, T& value, const std::string& help);
  template <typename T>
  Option& add(const std::string& name, std::vector<T>& value, const std::string& help);

  /// Takes an option of another set over, with the value that it is over.
  void add(const Option& option) { options_.push_back(option); }

  const std::deque<Option>& options() const { return options_; }

  /// The option of that name, dashes and underscores being the same; nullptr where there is none.
  const Option* find(std::string_view name) const;
  /// did_you_mean() of the options' names.
  std::string suggestion(std::string_view name) const;

  /// Sets what the sources say, a later one over an earlier one. Options that are `first` go before
  /// all others; within a source the order is that of the definitions. Throws UsageError, with the
  /// assignment's origin, for an unknown name, two values for what takes one, or a bad value.
  void apply(const std::vector<Assignments>& sources) const;

  /// One line for each option that may not change and holds something else than in `recorded`:
  /// "dropout: 0.1 in the run, 0.3 asked for".
  std::vector<std::string> contradictions(const OptionSet& recorded) const;

  /// "beam_size 4, length_penalty 0.6": the options that change quality.
  std::string quality_summary() const;

 private:
  Option& add_option(const std::string& name, const std::string& help);
  void apply_one(const Assignment& assignment) const;

  std::deque<Option> options_;  // references to elements stay valid
  std::string group_ = "Options";
};

/// The end of a message about a name that is none of the candidates: `; did you mean "X"?` with the
/// one that the fewest insertions, deletions, substitutions and swaps of neighbours turn `name`
/// into. Where more than two and a third of its characters would have to change, `; ` and
/// `otherwise`.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates,
                         std::string_view otherwise);

/// "bleu,chrf" as two.
std::vector<std::string> split_at_commas(const std::vector<std::string>& texts);

/// With underscores for dashes.
std::string with_underscores(std::string_view name);

template <typename T>
Option& OptionSet::add(const std::string& name, T& value, const std::string& help) {
  Option& option = add_option(name, help);
  option.is_flag = std::is_same_v<T, bool>;
  option.type = type_name(value);
  option.default_text = text_of(value);
  option.set = [&value](const std::vector<std::string>& texts) { read_value(texts.at(0), value); };
  option.get = [&value] { return std::vector<std::string>{text_of(value)}; };
  return option;
}

template <typename T>
Option& OptionSet::add(const std::string& name, std::vector<T>& value, const std::string& help) {
  Option& option = add_option(name, help);
  option.is_list = true;
  option.type = type_name(T{});
  option.set = [&value](const std::vector<std::string>& texts) {
    std::vector<std::string> split;
    if constexpr (Choice<T>) split = split_at_commas(texts);  // file names may have commas
    std::vector<T> read;
    for (const std::string& text : split.empty() ? texts : split) {
      read_value(text, read.emplace_back());
    }
    value = std::move(read);
  };
  option.get = [&value] {
    std::vector<std::string> texts;
    texts.reserve(value.size());
    for (const T& each : value) texts.push_back(text_of(each));
    return texts;
  };
  for (const std::string& text : option.get()) {
    option.default_text += (option.default_text.empty() ? "" : " ") + text;
  }
  return option;
}

}  // namespace attend
