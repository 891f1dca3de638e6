#pragma once

#include <string>
#include <vector>

#include "attend/cli/option_set.h"
#include "attend/search/translator.h"

namespace attend {

class LineReader;  // data/text.h

/// Files that say line by line what translations must hold, read beside the text.
class ConstraintFiles {
 public:
  void define(OptionSet& options);
  /// Throws UsageError where one of the files is the standard input, which the text may be as well.
  void require() const;
  /// The files that were asked for.
  std::vector<std::string> paths() const;

  /// Opens the files. What it gives is read in step with `text`, which it names in errors, and
  /// lives as long as both; none where no file was asked for.
  NextConstraints open(const LineReader& text);
  /// Throws Error where a file has more lines than the text had.
  void finish(const LineReader& text);

 private:
  std::string prefix_;
  std::string required_;
  std::shared_ptr<LineReader> prefix_reader_;
  std::shared_ptr<LineReader> required_reader_;
};

}  // namespace attend
