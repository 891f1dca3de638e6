#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "attend/base/files.h"

namespace attend {

/// Where results go: a file, or standard output for "-". Nothing that could not be written passes
/// unnoticed. A file is complete or as it was before: it takes its name in finish(), and a job that
/// fails or is interrupted before leaves nothing behind. Devices and pipes are written straight.
/// One file at a time.
class Output {
 public:
  /// Throws Error naming the file where it cannot be written.
  explicit Output(const std::string& path);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void write(std::string_view text);
  /// Writes the line and its end.
  void write_line(std::string_view line);
  /// Makes what was written visible to readers of a pipe or device. Throws Error naming the file
  /// where something could not be written.
  void flush();
  /// All is written. Throws Error naming the file where something could not be.
  void finish();

 private:
  std::string name_;
  std::unique_ptr<AtomicFile> file_;  ///< none for what is written straight
  std::string buffer_;                ///< that the file does not have yet
  std::unique_ptr<std::ostream> device_;
  std::ostream* stream_ = nullptr;  ///< of what is written straight
};

/// Removes the file that is not finished, where there is one, before the process ends without
/// unwinding. Calls only what a signal handler may call.
void remove_unfinished_output();

/// Throws UsageError where `output` is the same file as one of `inputs`, by whatever name: it would
/// be written over while, or although, it is needed. "-" stands for the standard streams.
void refuse_to_overwrite(const std::string& output, const std::vector<std::string>& inputs);

/// "1 worker", "2 workers".
std::string counted(int64_t count, std::string_view noun);

/// Writes `text` to standard output. Throws Error where that is impossible.
void print(std::string_view text);

}  // namespace attend
