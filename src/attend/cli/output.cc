#include "attend/cli/output.h"

#include <cerrno>
#include <iostream>

#include "attend/base/error.h"
#include "attend/base/files.h"

namespace attend {

Output::Output(const std::string& path)
    : name_(path == "-" ? "standard output" : path), stream_(&std::cout) {
  if (path == "-") return;
  errno = 0;
  file_.open(path, std::ios::binary | std::ios::trunc);
  if (!file_) fail_on_file("write", path, errno);
  stream_ = &file_;
}

void Output::write_line(std::string_view line) { *stream_ << line << '\n'; }

void Output::flush() {
  errno = 0;
  stream_->flush();
  if (!*stream_) fail_on_file("write", name_, errno);
}

void print(std::string_view text) {
  Output output("-");
  output.stream() << text;
  output.flush();
}

}  // namespace attend
