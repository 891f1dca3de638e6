#include "attend/cli/status_line.h"

#include <cstdio>

#include <spdlog/sinks/base_sink.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "attend/base/log.h"

namespace attend {
namespace {

constexpr const char* kEraseLine = "\r\x1b[K";

size_t terminal_columns() {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

}  // namespace

/// Stands between the logger and its sinks: takes the status line away, lets the log line through,
/// and draws the status line again below it.
class StatusLine::Sink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit Sink(std::vector<spdlog::sink_ptr> inner) : inner_(std::move(inner)) {}

  const std::vector<spdlog::sink_ptr>& inner() const { return inner_; }

  void show(const std::string& text) {
    const std::lock_guard lock(mutex_);
    text_ = text;
    draw();
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (!text_.empty()) std::fputs(kEraseLine, stderr);
    for (const auto& each : inner_) {
      if (each->should_log(message.level)) each->log(message);
    }
    if (!text_.empty()) draw();
  }
  void flush_() override {
    for (const auto& each : inner_) each->flush();
  }

 private:
  void draw() const {
    // The last column stays free: some terminals wrap after it.
    const std::string line = kEraseLine + first_columns(text_, terminal_columns() - 1);
    std::fputs(line.c_str(), stderr);
    std::fflush(stderr);
  }

  std::vector<spdlog::sink_ptr> inner_;
  std::string text_;
};

StatusLine::StatusLine() {
  if (isatty(STDERR_FILENO) == 0 || !logger().sinks().front()->should_log(spdlog::level::info))
    return;
  sink_ = std::make_shared<Sink>(logger().sinks());
  logger().sinks() = {sink_};
}

StatusLine::~StatusLine() {
  if (!sink_) return;
  clear();
  logger().sinks() = sink_->inner();
}

bool StatusLine::is_drawn() const { return sink_ != nullptr; }

void StatusLine::show(const std::string& text) {
  if (sink_) sink_->show(text);
}

void StatusLine::clear() { show(""); }

void StatusLine::log_only(const std::string& text) {
  if (sink_) sink_->set_level(spdlog::level::warn);
  logger().info("{}", text);
  if (sink_) sink_->set_level(spdlog::level::trace);
}

std::string short_text(const TrainProgress& progress) {
  std::string text =
      fmt::format("step {} ep {:.2f} loss {:.2f} ppl {:.2f} {:.0f} tok/s lr {:.2g} norm {:.2f}",
                  progress.done.updates, progress.done.epochs, progress.loss, progress.perplexity,
                  progress.tokens_per_second, progress.learning_rate, progress.gradient_norm);
  text += fmt::format(" {}M", progress.peak_resident_bytes >> 20);
  if (progress.skipped_updates > 0) text += fmt::format(" skipped {}", progress.skipped_updates);
  if (progress.seconds_left < 0) return text;
  const auto minutes = static_cast<int64_t>(progress.seconds_left / 60);
  const auto seconds = static_cast<int64_t>(progress.seconds_left) % 60;
  if (minutes >= 60) return text + fmt::format(" {}h{:02}m left", minutes / 60, minutes % 60);
  return text + fmt::format(" {}m{:02}s left", minutes, seconds);
}

std::string first_columns(const std::string& text, size_t columns) {
  size_t end = 0;
  for (; end < text.size(); ++end) {
    const bool starts_character = (static_cast<unsigned char>(text[end]) & 0xC0) != 0x80;
    if (starts_character && columns-- == 0) break;
  }
  return text.substr(0, end);
}

}  // namespace attend
