#include "attend/base/files.h"

#include <csignal>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/io/support.h"

namespace attend {
namespace {

using Names = std::vector<std::string>;

TEST(AtomicFile, ReplacesTheOldFileAtOnce) {
  const TemporaryFolder folder;
  put(folder / "file", "old");
  AtomicFile file(folder / "file");
  file.write("new ");
  file.write("contents");
  EXPECT_EQ(get(folder / "file"), "old");
  file.commit();
  EXPECT_EQ(get(folder / "file"), "new contents");
  EXPECT_EQ(entries_of(folder.path()), Names{"file"});
}

TEST(AtomicFile, LeavesNothingWhenGivenUp) {
  const TemporaryFolder folder;
  put(folder / "file", "old");
  AtomicFile(folder / "file").write("half");
  EXPECT_EQ(get(folder / "file"), "old");
  EXPECT_EQ(entries_of(folder.path()), Names{"file"});
}

TEST(AtomicFile, WritesWhereThePathHasNoFolder) {
  const TemporaryFolder folder;
  const Path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  write_file("plain", "here");
  std::filesystem::current_path(before);
  EXPECT_EQ(get(folder / "plain"), "here");
}

TEST(Contract13, FullDiskKeepsTheOldFile) {
  SmallDisk disk("64k");
  if (!disk.mounted()) GTEST_SKIP() << disk.reason();
  const Path path = disk.path() / "model.safetensors";
  write_file(path, "the old model");
  const std::string message =
      message_of([&] { write_file(path, std::string(std::size_t{100} << 10, 'x')); });
  expect_contains(message, "cannot write " + path.string() + ": No space left on device");
  expect_contains(message, "free some space");
  EXPECT_EQ(get(path), "the old model");
  EXPECT_EQ(entries_of(disk.path()), Names{"model.safetensors"});
  write_file(path, "a smaller one fits");  // the space of the temporary is free again
  EXPECT_EQ(get(path), "a smaller one fits");
}

TEST(Contract13, ReadOnlyFolderIsNamed) {
  SmallDisk disk("64k");
  if (!disk.mounted()) GTEST_SKIP() << disk.reason();
  const Path path = disk.path() / "file";
  write_file(path, "old");
  disk.make_read_only();
  expect_contains(message_of([&] { write_file(path, "new"); }),
                  "cannot write " + path.string() + ": Read-only file system; choose a folder");
  expect_contains(message_of([&] { ensure_directory(disk.path() / "run"); }),
                  "cannot create the folder " + (disk.path() / "run").string());
  expect_contains(message_of([&] { remove_file(path); }), "cannot remove " + path.string());
  expect_contains(message_of([&] { const RunLock lock(disk.path()); }), "Read-only file system");
  EXPECT_EQ(get(path), "old");
}

TEST(Contract13, KilledWriterLeavesTheOldFile) {
  const TemporaryFolder folder;
  const Path path = folder / "file";
  std::filesystem::create_directory(folder / "checkpoints");
  put(path, "old");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    AtomicFile file(path);
    AtomicFile other(path.parent_path() / "checkpoints" / "step");
    file.write("half of the ne");
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(get(path), "old");
  EXPECT_EQ(entries_of(folder.path()).size(), 3U);  // file, checkpoints, and the temporary
  const RunLock lock(folder.path());
  EXPECT_EQ(entries_of(folder.path()), (Names{".lock", "checkpoints", "file"}));
  EXPECT_EQ(entries_of(folder / "checkpoints"), Names{});
}

TEST(Files, ErrorsNameThePathAndTheReason) {
  const TemporaryFolder folder;
  put(folder / "file", "12345");
  const Path missing = folder / "missing";
  expect_contains(
      message_of([&] { read_file(missing, 10); }),
      "cannot open " + missing.string() + ": No such file or directory; check the path");
  expect_contains(message_of([&] { read_file(folder.path(), 10); }),
                  "is a folder; expected a file");
  expect_contains(message_of([&] { read_file("/dev/null", 10); }), "is not a regular file");
  expect_contains(message_of([&] { read_file(folder / "file", 4); }),
                  "has 5 bytes; expected at most 4");
  EXPECT_EQ(read_file(folder / "file", 5), "12345");
  expect_contains(message_of([&] { write_file(missing / "file", "x"); }), "check the path");
  expect_contains(message_of([&] { ensure_directory(folder / "file"); }),
                  (folder / "file").string());
  expect_contains(message_of([&] { ensure_directory(folder / "file" / "below"); }),
                  "Not a directory");
  char bytes[8];
  const FileDescriptor file = open_file(folder / "file");
  EXPECT_EQ(size_of_file(file, folder / "file"), 5);
  expect_contains(message_of([&] { read_at(file, folder / "file", 2, bytes, 8); }),
                  "ends at byte 5, where 5 more were expected");
  remove_file(missing);
  remove_file(folder / "file");
  EXPECT_EQ(entries_of(folder.path()), Names{});
}

TEST(Files, FifoDoesNotHang) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  expect_contains(message_of([&] { open_file(folder / "fifo"); }), "not a regular file");
}

TEST(Contract16, FreeSpaceOfFoldersThatDoNotExistYet) {
  SmallDisk disk("1m");
  if (!disk.mounted()) GTEST_SKIP() << disk.reason();
  EXPECT_EQ(free_bytes(disk.path() / "runs" / "new"), 1 << 20);
  write_file(disk.path() / "file", std::string(300'000, 'x'));
  EXPECT_LE(free_bytes(disk.path()), (1 << 20) - 300'000);
  EXPECT_GT(free_bytes("relative/and/missing"), 0);
}

TEST(Files, ATemporaryFileHasNoNameAndIsWrittenAnywhere) {
  const TemporaryFolder folder;
  setenv("TMPDIR", folder.path().c_str(), 1);
  for (const bool there : {true, false}) {
    if (!there) setenv("TMPDIR", (folder / "missing").c_str(), 1);  // then it is in memory
    const FileDescriptor file = temporary_file();
    EXPECT_TRUE(entries_of(folder.path()).empty());
    write_at(file, "the file", 3, "345");
    write_at(file, "the file", 0, "012");
    EXPECT_EQ(size_of_file(file, "the file"), 6);
    char bytes[6];
    read_at(file, "the file", 0, bytes, 6);
    EXPECT_EQ(std::string(bytes, 6), "012345");
  }
  unsetenv("TMPDIR");
  const FileDescriptor full(open("/dev/full", O_WRONLY));
  EXPECT_THROW(write_at(full, "/dev/full", 0, "x"), NoSpaceError);
}

TEST(FileLock, TellsWhoHoldsIt) {
  const TemporaryFolder folder;
  FileLock first(folder / "new/lock"), second(folder / "new/lock");
  EXPECT_TRUE(first.try_lock());
  EXPECT_FALSE(second.try_lock());
  EXPECT_EQ(second.holder(), fmt::format(" (process {})", getpid()));
  { const FileLock gone = std::move(first); }
  EXPECT_TRUE(second.try_lock());
}

TEST(RunLock, OneTrainingInARun) {
  const TemporaryFolder folder;
  const Path run = folder / "runs/one";
  {
    const RunLock first(run);
    const std::string message = message_of([&] { const RunLock second(run); });
    expect_contains(message, fmt::format("another training (process {})", getpid()));
    expect_contains(message, run.string());
    const RunLock elsewhere(folder / "runs/two");
  }
  const RunLock again(run);
}

TEST(RunLock, FreedByDeath) {
  const TemporaryFolder folder;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const RunLock lock(folder.path());
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_NO_THROW(RunLock(folder.path()));
}

}  // namespace
}  // namespace attend
