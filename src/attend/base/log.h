#pragma once

#include <spdlog/spdlog.h>

namespace attend {

/// What reaches stderr. Results go to stdout and never through the log.
enum class LogLevel { kQuiet, kNormal };

/// Sends log lines to stderr, plain (no colour codes where stderr is not a terminal): warnings and
/// errors carry a prefix, information none. kQuiet leaves only errors (contract 23).
void set_log_level(LogLevel level);

/// The logger of the library. Use as `logger().info("{} pairs", n)`.
spdlog::logger& logger();

}  // namespace attend
