#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include "attend/base/error.h"
#include "attend/base/files.h"

namespace attend {

/// A new empty folder, gone with its contents at the end; in memory where the system has room for
/// files there, since the tests write tens of thousands.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const bool memory = access("/dev/shm", W_OK | X_OK) == 0;
    const Path parent = memory ? Path("/dev/shm") : std::filesystem::temp_directory_path();
    std::string name = (parent / "attend-io-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  const Path& path() const { return path_; }
  Path operator/(const std::string& name) const { return path_ / name; }

 private:
  Path path_;
};

/// A small file system of its own in memory, where the user may mount one.
class SmallDisk {
 public:
  explicit SmallDisk(const char* size) {
    mounted_ = mount("tmpfs", folder_.path().c_str(), "tmpfs", 0,
                     (std::string("size=") + size).c_str()) == 0;
    if (!mounted_) reason_ = std::string("cannot mount a tmpfs: ") + std::strerror(errno);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (mounted_) umount2(folder_.path().c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  const std::string& reason() const { return reason_; }
  const Path& path() const { return folder_.path(); }
  void make_read_only() {
    ASSERT_EQ(mount(nullptr, folder_.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0);
  }

 private:
  TemporaryFolder folder_;
  bool mounted_ = false;
  std::string reason_;
};

/// The message of the Error that `call` throws.
template <typename Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

inline void expect_contains(const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks: " << part;
}

/// Plain writing and reading, apart from the code under test.
inline void put(const Path& path, std::string_view contents) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(contents.data(), static_cast<std::streamsize>(contents.size()));
}

inline std::string get(const Path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<std::string> entries_of(const Path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Cuts, flips, inserts and removes bytes here and there.
inline std::string mutated(std::string bytes, std::mt19937& random) {
  if (random() % 4 == 0) bytes.resize(random() % bytes.size());
  for (unsigned change = 1 + random() % 4; change > 0 && !bytes.empty(); --change) {
    // Half of the changes near the beginning, where headers are.
    const std::size_t reach =
        random() % 2 == 0 ? std::min<std::size_t>(bytes.size(), 64) : bytes.size();
    const std::size_t at = random() % reach;
    switch (random() % 5) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
        break;
      case 2:
        bytes.insert(at, 1, "{}[]\",:0-9e."[random() % 12]);
        break;
      case 3:
        bytes.erase(at, 1 + random() % 8);
        break;
      default:
        bytes[at] = static_cast<char>('0' + random() % 10);
        break;
    }
  }
  return bytes;
}

}  // namespace attend
