#include "attend/train/line_file.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace attend {
namespace {

int64_t size_of(const FileDescriptor& file) {
  struct stat status {};
  return fstat(file.get(), &status) == 0 ? status.st_size : 0;
}

/// The size that the file has up to its last whole line.
int64_t size_of_lines(const FileDescriptor& file) {
  constexpr int64_t kPiece = 4096;
  char piece[kPiece];
  int64_t end = size_of(file);
  while (end > 0) {
    const int64_t begin = std::max<int64_t>(0, end - kPiece);
    const ssize_t got = ::pread(file.get(), piece, static_cast<std::size_t>(end - begin), begin);
    if (got != end - begin) return size_of(file);  // not to be read: left as it is
    for (int64_t i = got; i > 0; --i) {
      if (piece[i - 1] == '\n') return begin + i;
    }
    end = begin;
  }
  return 0;
}

bool write_whole(const FileDescriptor& file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

LineFile::LineFile(Path path)
    : path_(std::move(path)),
      file_(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
  if (file_.get() < 0) {
    note_problem();
    return;
  }
  const int64_t lines = size_of_lines(file_);
  if (lines < size_of(file_) && ftruncate(file_.get(), lines) != 0) note_problem();
}

void LineFile::note_problem() {
  if (problem_ == 0) problem_ = errno;
}

void LineFile::add(std::string_view line) {
  if (file_.get() < 0) return;
  const int64_t before = size_of(file_);
  if (write_whole(file_, std::string(line) + '\n')) return;
  note_problem();
  // What was written of the line must not stay; where even that fails, the next opening sees to it.
  [[maybe_unused]] const int cut = ftruncate(file_.get(), before);
}

}  // namespace attend
