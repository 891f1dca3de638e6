#pragma once

namespace attend {

/// What reaches stderr. Results go to stdout and never through the log.
enum class LogLevel { kQuiet, kNormal };

/// Sends log lines to stderr, plain (no colour codes where stderr is not a terminal): warnings and
/// errors carry a prefix, information none. kQuiet leaves only errors (contract 23).
void set_log_level(LogLevel level);

}  // namespace attend
