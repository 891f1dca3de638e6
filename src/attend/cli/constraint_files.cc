#include "attend/cli/constraint_files.h"

#include <memory>
#include <utility>

#include "attend/base/error.h"
#include "attend/data/text.h"
#include "attend/data/utf8.h"

namespace attend {
namespace {

std::string next_line(LineReader& reader, const LineReader& text) {
  std::string line;
  if (!reader.next(line)) {
    fail(
        "{} has {} lines, fewer than {}; expected one for each line to translate, empty where "
        "nothing is asked of it",
        reader.name(), reader.line_number(), text.name());
  }
  if (!valid_utf8(line)) {
    fail("{}, line {}: found bytes that are no UTF-8", reader.name(), reader.line_number());
  }
  return line;
}

std::vector<std::string> split_at_tabs(const std::string& line) {
  std::vector<std::string> phrases;
  for (std::size_t first = 0; first <= line.size();) {
    const std::size_t end = std::min(line.find('\t', first), line.size());
    if (end > first) phrases.push_back(line.substr(first, end - first));
    first = end + 1;
  }
  return phrases;
}

}  // namespace

void ConstraintFiles::define(OptionSet& options) {
  options
      .add("prefix", prefix_,
           "A line for each line of text: what its translation begins with; may be empty")
      .metavar("FILE");
  options
      .add("require", required_,
           "A line for each line of text: words or phrases, with tabs between them, that its "
           "translation must have")
      .metavar("FILE");
}

std::vector<std::string> ConstraintFiles::paths() const {
  std::vector<std::string> paths;
  if (!prefix_.empty()) paths.push_back(prefix_);
  if (!required_.empty()) paths.push_back(required_);
  return paths;
}

void ConstraintFiles::require() const {
  for (const auto& [option, path] :
       {std::pair("prefix", prefix_), std::pair("require", required_)}) {
    if (path == "-") fail_usage("{}: found -, expected a file beside the text", option);
  }
}

NextConstraints ConstraintFiles::open(const LineReader& text) {
  if (!prefix_.empty()) prefix_reader_ = std::make_shared<LineReader>(prefix_);
  if (!required_.empty()) required_reader_ = std::make_shared<LineReader>(required_);
  if (!prefix_reader_ && !required_reader_) return {};
  return [this, &text] {
    LineConstraints constraints;
    if (prefix_reader_) constraints.prefix = next_line(*prefix_reader_, text);
    if (required_reader_) {
      constraints.required = split_at_tabs(next_line(*required_reader_, text));
    }
    return constraints;
  };
}

void ConstraintFiles::finish(const LineReader& text) {
  for (const auto& reader : {prefix_reader_, required_reader_}) {
    std::string line;
    if (reader && reader->next(line)) {
      fail("{} has more lines than {}, which has {}; expected one for each line to translate",
           reader->name(), text.name(), text.line_number());
    }
  }
}

}  // namespace attend
