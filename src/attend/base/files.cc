#include "attend/base/files.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "attend/base/error.h"
#include "attend/base/log.h"

namespace attend {
namespace {

constexpr std::string_view kTemporarySuffix = ".attend-tmp";
/// write(2) stops short of 2 GiB.
constexpr std::size_t kMostAtOnce = std::size_t{1} << 26;

std::string_view way_out(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return "; free some space there, or choose another folder";
    case EFBIG:
      return "; raise the limit of file sizes (ulimit -f)";
    case EROFS:
      return "; choose a folder on a file system that can be written";
    case EACCES:
    case EPERM:
      return "; change its permissions, or choose another";
    case ENOENT:
      return "; check the path";
    case EIO:
      return "; the disk may be failing";
    case EMFILE:
    case ENFILE:
      return "; raise the limit of open files (ulimit -n)";
    default:
      return "";
  }
}

Path folder_of(const Path& path) { return path.has_parent_path() ? path.parent_path() : Path("."); }

/// No other process and no other thread of this one makes the same name.
Path temporary_for(const Path& path) {
  static std::atomic<uint64_t> made = 0;
  const std::string name = path.filename().string().substr(0, 128);
  return folder_of(path) / fmt::format(".{}.{}-{}{}", name, getpid(), made++, kTemporarySuffix);
}

/// Makes the entries of a folder survive a power cut. Some file systems know no such thing.
void flush_folder(const Path& folder) {
  const FileDescriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.get() < 0) fail_on_file("open", folder, errno);
  if (fsync(opened.get()) != 0 && errno != EINVAL && errno != ENOTSUP && errno != EROFS) {
    fail_on_file("flush", folder, errno);
  }
}

}  // namespace

void fail_on_file(std::string_view what, const Path& path, int error_number) {
  const std::string message =
      fmt::format("cannot {} {}: {}{}", what, path.string(),
                  std::generic_category().message(error_number), way_out(error_number));
  if (error_number == ENOSPC || error_number == EDQUOT) throw NoSpaceError(message);
  throw Error(message);
}

// ------------------------------------------------------------------------------ FileDescriptor

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept : descriptor_(other.release()) {}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int FileDescriptor::release() { return std::exchange(descriptor_, -1); }

// ------------------------------------------------------------------------------ writing

AtomicFile::AtomicFile(Path path)
    : path_(std::move(path)),
      temporary_(temporary_for(path_)),
      file_(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
  if (file_.get() < 0) {
    const int reason = errno;
    temporary_.clear();
    fail_on_file("write", path_, reason);
  }
  struct stat old {};
  if (::stat(path_.c_str(), &old) == 0 && S_ISREG(old.st_mode)) {
    ::fchmod(file_.get(), old.st_mode & 0777);  // where that is impossible, the umask decides
  }
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() noexcept {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

void AtomicFile::write(const void* data, std::size_t bytes) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(file_.get(), next, std::min(bytes, kMostAtOnce));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int reason = errno;
      discard();
      fail_on_file("write", path_, reason);
    }
    next += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

void AtomicFile::commit() {
  const auto check = [this](int result) {
    if (result == 0) return;
    const int reason = errno;
    discard();
    fail_on_file("write", path_, reason);
  };
  check(fsync(file_.get()));
  check(::close(file_.release()));
  check(::rename(temporary_.c_str(), path_.c_str()));
  temporary_.clear();
  flush_folder(folder_of(path_));
}

void write_file(const Path& path, std::string_view contents) {
  AtomicFile file(path);
  file.write(contents);
  file.commit();
}

void remove_temporaries(const Path& directory) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(".") && name.ends_with(kTemporarySuffix)) remove_file(entry.path());
  }
}

void remove_file(const Path& path) {
  if (::unlink(path.c_str()) == 0) {
    flush_folder(folder_of(path));
  } else if (errno != ENOENT) {
    fail_on_file("remove", path, errno);
  }
}

void ensure_directory(const Path& path) {
  std::error_code error;
  const bool created = std::filesystem::create_directories(path, error);
  if (error) fail_on_file("create the folder", path, error.value());
  if (!std::filesystem::is_directory(path, error)) {
    fail("{} is not a folder; choose another name", path.string());
  }
  if (created) flush_folder(folder_of(path));
}

// ------------------------------------------------------------------------------ reading

FileDescriptor open_file(const Path& path) {
  // O_NONBLOCK: a FIFO must not hang the program before it is seen to be one.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) fail_on_file("open", path, errno);
  struct stat status {};
  if (fstat(file.get(), &status) != 0) fail_on_file("open", path, errno);
  if (S_ISDIR(status.st_mode)) fail("{} is a folder; expected a file", path.string());
  if (!S_ISREG(status.st_mode)) fail("{} is not a regular file", path.string());
  return file;
}

int64_t size_of_file(const FileDescriptor& file, const Path& path) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) fail_on_file("read", path, errno);
  return status.st_size;
}

void read_at(const FileDescriptor& file, const Path& path, int64_t offset, void* into,
             int64_t bytes) {
  constexpr int64_t kPiece = int64_t{1} << 26;
  char* next = static_cast<char*>(into);
  while (bytes > 0) {
    const auto piece = static_cast<std::size_t>(std::min(bytes, kPiece));
    const ssize_t got = ::pread(file.get(), next, piece, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_on_file("read", path, errno);
    if (got == 0) {
      fail("{} ends at byte {}, where {} more were expected; it was cut off", path.string(), offset,
           bytes);
    }
    next += got;
    offset += got;
    bytes -= got;
  }
}

std::string read_file(const Path& path, int64_t max_bytes) {
  const FileDescriptor file = open_file(path);
  const int64_t bytes = size_of_file(file, path);
  if (bytes > max_bytes) {
    fail("{} has {} bytes; expected at most {}: it is not the kind of file that it should be",
         path.string(), bytes, max_bytes);
  }
  std::string contents(static_cast<std::size_t>(bytes), '\0');
  read_at(file, path, 0, contents.data(), bytes);
  return contents;
}

std::optional<std::pair<uint64_t, uint64_t>> identity_of_file(const Path& path, int standard) {
  struct stat status {};
  const int result = path == "-" ? fstat(standard, &status) : ::stat(path.c_str(), &status);
  if (result != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return std::pair<uint64_t, uint64_t>(status.st_dev, status.st_ino);
}

int64_t free_bytes(const Path& path) {
  std::error_code error;
  Path there = std::filesystem::absolute(path, error);
  while (!std::filesystem::exists(there, error) && there.has_relative_path()) {
    there = there.parent_path();
  }
  struct statvfs status {};
  if (::statvfs(there.c_str(), &status) != 0)
    fail_on_file("ask for the free space of", path, errno);
  return static_cast<int64_t>(status.f_bavail) * static_cast<int64_t>(status.f_frsize);
}

void write_at(const FileDescriptor& file, const Path& path, int64_t offset, std::string_view data) {
  while (!data.empty()) {
    const ssize_t written =
        ::pwrite(file.get(), data.data(), std::min(data.size(), kMostAtOnce), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_on_file("write", path, errno);
    data.remove_prefix(static_cast<std::size_t>(written));
    offset += written;
  }
}

FileDescriptor temporary_file() {
  std::error_code error;
  const Path folder = std::filesystem::temp_directory_path(error);
  std::string name = (folder / "attend-XXXXXX").string();
  FileDescriptor file(error ? -1 : ::mkostemp(name.data(), O_CLOEXEC));
  if (file.get() >= 0) {
    ::unlink(name.c_str());
    return file;
  }
  file = FileDescriptor(::memfd_create("attend", MFD_CLOEXEC));
  if (file.get() < 0) fail_on_file("make a temporary file in", folder, errno);
  return file;
}

// ------------------------------------------------------------------------------ locks

FileLock::FileLock(Path path) : path_(std::move(path)) {
  ensure_directory(folder_of(path_));
  file_ = FileDescriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (file_.get() < 0) fail_on_file("write", path_, errno);
}

bool FileLock::try_lock() {
  if (flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    logger().warn("cannot lock {}: {}; take care to start one training at a time there",
                  path_.string(), std::generic_category().message(errno));
    return true;
  }
  if (ftruncate(file_.get(), 0) != 0) fail_on_file("write", path_, errno);
  write_at(file_, path_, 0, fmt::format("{}\n", getpid()));
  return true;
}

std::string FileLock::holder() const {
  char text[32] = {};
  const ssize_t bytes = ::pread(file_.get(), text, sizeof(text) - 1, 0);
  const std::string_view digits(text, bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  const std::size_t end = digits.find_first_not_of("0123456789");
  return digits.empty() || end == 0 ? "" : fmt::format(" (process {})", digits.substr(0, end));
}

RunLock::RunLock(const Path& run_directory) : lock_(run_directory / ".lock") {
  if (!lock_.try_lock()) {
    fail("another training{} is running in {}; wait for it, stop it, or choose another --run",
         lock_.holder(), run_directory.string());
  }
  remove_temporaries(run_directory);
  remove_temporaries(run_directory / "checkpoints");
}

}  // namespace attend
