#pragma once

#include <memory>
#include <string>

#include "attend/train/progress.h"

namespace attend {

/// One line at the bottom of a terminal that is drawn anew again and again, such as a job's
/// progress (contract 23). Lines of the log appear above it. Where stderr is not a terminal, or
/// only errors are wanted, nothing is drawn. One at a time; calls may come from any thread.
class StatusLine {
 public:
  StatusLine();
  /// The line disappears.
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  /// Whether show() draws anything; where it does not, progress belongs into the log.
  bool is_drawn() const;
  /// Draws `text`, cut to the width of the terminal.
  void show(const std::string& text);
  void clear();
  /// Logs `text` as information, but not on the terminal where a line is drawn: there it would only
  /// repeat what is seen.
  void log_only(const std::string& text);

 private:
  class Sink;
  std::shared_ptr<Sink> sink_;
};

/// A run's progress on one line of a terminal; to_string of it is for logs.
std::string short_text(const TrainProgress& progress);

/// The first `columns` characters of UTF-8 text.
std::string first_columns(const std::string& text, size_t columns);

}  // namespace attend
