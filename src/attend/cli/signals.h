#pragma once

#include <atomic>

namespace attend {

/// While one lives, Ctrl-C and SIGTERM ask a job to stop after what it is doing, and say so; the
/// same signal again ends the process at once. A pipe that nobody reads any more, of a log say, is
/// an error of writing and does not end the job. One at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// True from the first signal on.
  const std::atomic<bool>& stop() const;
  /// Where a signal came, ends the process by that signal, so that a shell or supervisor sees that
  /// the job was stopped and is not done. Call it when everything is saved.
  void finish() const;
};

}  // namespace attend
