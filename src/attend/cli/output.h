#pragma once

#include <fstream>
#include <ostream>
#include <string>
#include <string_view>

namespace attend {

/// Where results go: a file, or standard output for "-". Nothing that could not be written passes
/// unnoticed.
class Output {
 public:
  /// Throws Error naming the file where it cannot be opened.
  explicit Output(const std::string& path);

  /// For code that writes to streams; call flush() when it is done.
  std::ostream& stream() { return *stream_; }
  /// Writes the line and its end.
  void write_line(std::string_view line);
  /// Throws Error naming the file where something could not be written.
  void flush();

 private:
  std::string name_;
  std::ofstream file_;
  std::ostream* stream_;
};

/// Writes `text` to standard output. Throws Error where that is impossible.
void print(std::string_view text);

}  // namespace attend
