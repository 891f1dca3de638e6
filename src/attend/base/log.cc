#include "attend/base/log.h"

#include <memory>

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace attend {
namespace {

/// "warning: " and "error: " before the line, nothing before information.
class LevelPrefix : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    std::string_view prefix;
    if (message.level == spdlog::level::warn) prefix = "warning: ";
    if (message.level >= spdlog::level::err) prefix = "error: ";
    out.append(prefix.data(), prefix.data() + prefix.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return spdlog::details::make_unique<LevelPrefix>();
  }
};

std::shared_ptr<spdlog::logger> make_logger() {
  auto made =
      std::make_shared<spdlog::logger>("attend", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<LevelPrefix>('*').set_pattern("%*%v");
  made->set_formatter(std::move(formatter));
  made->set_level(spdlog::level::info);
  return made;
}

}  // namespace

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = make_logger();
  return *instance;
}

void set_log_level(LogLevel level) {
  // Of stderr alone: a run's own log keeps every line.
  spdlog::sink_ptr& terminal = logger().sinks().front();
  terminal->set_level(level == LogLevel::kQuiet ? spdlog::level::err : spdlog::level::info);
}

}  // namespace attend
