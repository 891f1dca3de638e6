#pragma once

#include <spdlog/spdlog.h>

#include "attend/base/log_level.h"

namespace attend {

/// The logger of the library. Use as `logger().info("{} pairs", n)`.
spdlog::logger& logger();

}  // namespace attend
