#include "attend/cli/signals.h"

#include <unistd.h>

#include <csignal>
#include <string_view>

namespace attend {
namespace {

std::atomic<bool> stop_asked = false;
std::atomic<int> received = 0;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

/// Calls only what a signal handler may call.
void ask_to_stop(int signal) {
  constexpr std::string_view kMessage =
      "\nstopping: a checkpoint is written first; the same signal again ends at once\n";
  received = signal;
  stop_asked = true;
  std::signal(signal, SIG_DFL);
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kMessage.data(), kMessage.size());
}

}  // namespace

StopSignals::StopSignals() {
  stop_asked = false;
  received = 0;
  std::signal(SIGINT, ask_to_stop);
  std::signal(SIGTERM, ask_to_stop);
  std::signal(SIGPIPE, SIG_IGN);
}

StopSignals::~StopSignals() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGPIPE, SIG_DFL);
}

const std::atomic<bool>& StopSignals::stop() const { return stop_asked; }

void StopSignals::finish() const {
  const int signal = received;
  if (signal == 0) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace attend
