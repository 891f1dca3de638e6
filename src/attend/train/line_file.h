#pragma once

#include <atomic>
#include <string_view>

#include "attend/base/files.h"

namespace attend {

/// A file that lines are added to at its end, each whole or not at all. A line that an earlier
/// writer left without its end is cut off. Nothing is buffered: what was added is there when the
/// process is killed. A full disk is not an Error: problem() says what is wrong, and the next line
/// is tried again.
class LineFile {
 public:
  explicit LineFile(Path path);

  /// `line` without its end.
  void add(std::string_view line);
  /// The errno of the first line, or of opening, that failed; 0 where none did.
  int problem() const { return problem_; }
  const Path& path() const { return path_; }

 private:
  void note_problem();

  Path path_;
  FileDescriptor file_;
  std::atomic<int> problem_ = 0;  ///< asked for by other threads than the one that adds
};

}  // namespace attend
