#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "attend/base/error.h"

namespace attend {

using Path = std::filesystem::path;

/// A file descriptor that closes itself.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();

  int get() const { return descriptor_; }
  /// Gives the descriptor up, to be closed by the caller.
  int release();

 private:
  int descriptor_ = -1;
};

/// A file that is complete or absent (contract 13). What is written goes to a temporary in the same
/// folder; commit() flushes it to the disk, renames it over `path` and flushes the folder. Whatever
/// goes wrong before that leaves the old file as it was, removes the temporary and throws an Error
/// that names the path, the system's reason and what to do. The new file has the permissions of the
/// old one.
class AtomicFile {
 public:
  explicit AtomicFile(Path path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  /// Removes the temporary unless commit() has been called.
  ~AtomicFile();

  void write(const void* data, std::size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void commit();
  /// For handlers of signals, which end the process before it can be removed.
  const Path& temporary() const { return temporary_; }

 private:
  void discard() noexcept;

  Path path_;
  Path temporary_;
  FileDescriptor file_;
};

/// An AtomicFile of one piece.
void write_file(const Path& path, std::string_view contents);

/// Removes what killed processes left in `directory`: the temporaries of AtomicFile. Only for a
/// holder of the directory's lock.
void remove_temporaries(const Path& directory);

/// Opens a regular file for reading. Throws Error: missing, a directory, not readable.
FileDescriptor open_file(const Path& path);

/// The size of an open file in bytes.
int64_t size_of_file(const FileDescriptor& file, const Path& path);

/// Reads exactly `bytes` bytes from `offset`. Throws Error where the file is shorter.
void read_at(const FileDescriptor& file, const Path& path, int64_t offset, void* into,
             int64_t bytes);

/// The whole of a regular file. Throws Error when it has more than `max_bytes`.
std::string read_file(const Path& path, int64_t max_bytes);

/// The system's number of a file, whatever its names: device and inode. Nothing for what is missing
/// or no regular file; "-" is `standard`, the descriptor of a standard stream.
std::optional<std::pair<uint64_t, uint64_t>> identity_of_file(const Path& path, int standard);

/// Creates the directory and its parents where they are missing. Throws Error where that is
/// impossible or something else has the name.
void ensure_directory(const Path& path);

/// Removes a file, if there, and flushes its folder. Throws Error where it cannot.
void remove_file(const Path& path);

/// What an unprivileged process may still write where `path` is or would be (--dry-run).
int64_t free_bytes(const Path& path);

/// Writes all of `data` at `offset`. Throws Error naming the path and the system's reason.
void write_at(const FileDescriptor& file, const Path& path, int64_t offset, std::string_view data);

/// An open file without a name, gone when it is closed: in the folder for temporary files, or in
/// memory where there is no such folder to write in.
FileDescriptor temporary_file();

/// A disk or a quota is full.
class NoSpaceError : public Error {
 public:
  using Error::Error;
};

/// An Error (NoSpaceError where that is the reason) naming `path`, what could not be done with it
/// ("write", "open"), the system's reason for `error_number` and, where there is one, the way out.
[[noreturn]] void fail_on_file(std::string_view what, const Path& path, int error_number);

/// One process at a time, by flock(2) on a file: freed by the system when the process ends, however
/// it ends.
class FileLock {
 public:
  /// Makes the file where it is missing, and its folder.
  explicit FileLock(Path path);
  /// False where another process holds the lock. A file system without locks is a warning.
  bool try_lock();
  /// For messages: " (process 123)", or nothing where that is not known.
  std::string holder() const;

 private:
  Path path_;
  FileDescriptor file_;
};

/// One process at a time in a run directory, by `.lock` in it.
class RunLock {
 public:
  /// Takes the lock, and then removes the temporaries that a killed process left in the directory
  /// and in `checkpoints`. Throws Error, naming the process that holds the lock, when another does.
  explicit RunLock(const Path& run_directory);

 private:
  FileLock lock_;
};

}  // namespace attend
