#pragma once

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <spdlog/sinks/ostream_sink.h>

#include "attend/base/log.h"

namespace attend {

/// What reaches the log while this lives.
class CapturedLog {
 public:
  CapturedLog() : before_(logger().sinks()) {
    logger().sinks() = {std::make_shared<spdlog::sinks::ostream_sink_mt>(stream_)};
  }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;
  ~CapturedLog() { logger().sinks() = before_; }

  std::string text() const { return stream_.str(); }
  std::size_t count(const std::string& part) const {
    std::size_t found = 0;
    const std::string all = text();
    for (std::size_t at = 0; (at = all.find(part, at)) != std::string::npos; ++at) ++found;
    return found;
  }

 private:
  std::ostringstream stream_;
  std::vector<spdlog::sink_ptr> before_;
};

}  // namespace attend
