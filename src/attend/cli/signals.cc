#include "attend/cli/signals.h"

#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <ctime>
#include <string_view>

namespace attend {
namespace {

std::atomic<bool> stop_asked = false;
std::atomic<int> received = 0;
std::atomic<int64_t> received_at = 0;  ///< by milliseconds()
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free &&
              std::atomic<int64_t>::is_always_lock_free);

/// Of a clock that nobody sets.
int64_t milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

/// Calls only what a signal handler may call. What comes within a second of the first is the same
/// wish: `timeout` signals its child and then its group, terminals and service managers likewise.
void ask_to_stop(int signal) {
  constexpr int64_t kSameWish = 1000;
  constexpr std::string_view kMessage =
      "\nstopping: a checkpoint is written first; a signal a second from now or later ends at "
      "once\n";
  if (stop_asked) {
    if (milliseconds() - received_at < kSameWish) return;
    std::signal(signal, SIG_DFL);
    std::raise(signal);  // when this handler returns
    return;
  }
  received = signal;
  received_at = milliseconds();
  stop_asked = true;
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
