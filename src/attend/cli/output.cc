#include "attend/cli/output.h"

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iostream>

#include "attend/base/error.h"

namespace attend {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;
constexpr int kEndingSignals[] = {SIGHUP, SIGINT, SIGTERM};

/// The unfinished file, for the handler; empty where there is none.
char unfinished[PATH_MAX] = "";

void remove_unfinished(int signal) {
  remove_unfinished_output();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void forget_unfinished() {
  if (unfinished[0] == '\0') return;
  for (const int signal : kEndingSignals) std::signal(signal, SIG_DFL);
  unfinished[0] = '\0';
}

void remember_unfinished(const Path& path) {
  const std::string name = path.string();
  if (name.size() >= sizeof(unfinished)) return;
  std::memcpy(unfinished, name.c_str(), name.size() + 1);
  for (const int signal : kEndingSignals) {
    // What ignores a signal already, nohup say, goes on ignoring it.
    if (std::signal(signal, remove_unfinished) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
}

/// Another name of what is open already, maybe a file that the shell appends to: no file to
/// replace.
bool names_descriptor(const std::string& path) {
  return path == "/dev/stderr" || path.starts_with("/dev/fd/") || path.starts_with("/proc/");
}

/// The file behind links, so that what is renamed takes its place and not theirs.
Path behind_links(const Path& path) {
  std::error_code error;
  const Path real = std::filesystem::canonical(path, error);
  return error ? path : real;
}

}  // namespace

Output::Output(const std::string& path)
    : name_(path == "-" ? "standard output" : path), stream_(&std::cout) {
  if (path == "-" || path == "/dev/stdout") return;
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (error && error != std::errc::no_such_file_or_directory) {
    fail_on_file("write", path, error.value());
  }
  if (std::filesystem::is_directory(status)) {
    fail("cannot write {}: it is a folder; expected the name of a file", path);
  }
  const bool absent = !std::filesystem::exists(status);
  if (absent || (std::filesystem::is_regular_file(status) && !names_descriptor(path))) {
    const Path real = behind_links(path);
    if (!absent && ::access(real.c_str(), W_OK) != 0) {
      fail_on_file("write", path, errno);
    }
    file_ = std::make_unique<AtomicFile>(real);
    remember_unfinished(file_->temporary());
    return;
  }
  errno = 0;
  device_ = std::make_unique<std::ofstream>(path, std::ios::binary | std::ios::app);
  if (!*device_) fail_on_file("write", path, errno);
  stream_ = device_.get();
}

Output::~Output() {
  if (!file_) return;
  file_.reset();
  forget_unfinished();
}

void Output::write(std::string_view text) {
  if (!file_) {
    errno = 0;
    *stream_ << text;
    if (!*stream_) fail_on_file("write", name_, errno);
    return;
  }
  buffer_ += text;
  if (buffer_.size() < kBufferBytes) return;
  file_->write(buffer_);
  buffer_.clear();
}

void Output::write_line(std::string_view line) {
  write(line);
  write("\n");
}

void Output::flush() {
  if (file_) return;
  errno = 0;
  stream_->flush();
  if (!*stream_) fail_on_file("write", name_, errno);
}

void Output::finish() {
  if (!file_) return flush();
  file_->write(buffer_);
  file_->commit();
  buffer_.clear();
  forget_unfinished();
}

void remove_unfinished_output() {
  if (unfinished[0] != '\0') ::unlink(unfinished);
}

void refuse_to_overwrite(const std::string& output, const std::vector<std::string>& inputs) {
  const auto written = identity_of_file(output, STDOUT_FILENO);
  if (!written) return;
  for (const std::string& input : inputs) {
    if (identity_of_file(input, STDIN_FILENO) != written) continue;
    const auto named = [](const std::string& path, const char* standard) {
      return path == "-" ? standard : path;
    };
    fail_usage("output: {} is the same file as {}, which is read; choose another --output",
               named(output, "standard output"), named(input, "standard input"));
  }
}

std::string counted(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

void print(std::string_view text) {
  Output output("-");
  output.write(text);
  output.finish();
}

}  // namespace attend
