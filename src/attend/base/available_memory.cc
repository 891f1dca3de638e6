#include "attend/base/available_memory.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>

namespace attend {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

/// The number in a file that holds one; nothing where it holds "max" or is not there.
std::optional<int64_t> number_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

int64_t free_on_machine(const std::string& meminfo) {
  std::ifstream file(meminfo);
  for (std::string key; file >> key;) {
    int64_t kilobytes = 0;
    if (key == "MemAvailable:" && file >> kilobytes) return kilobytes * 1024;
  }
  return kNoLimit;
}

/// Of the group itself: its limit less what is in use, caches that can be dropped not counted.
int64_t free_in_group(const std::filesystem::path& group) {
  const auto limit = number_in(group / "memory.max");
  const auto used = number_in(group / "memory.current");
  if (!limit || !used) return kNoLimit;
  int64_t caches = 0;
  std::ifstream statistics(group / "memory.stat");
  std::string key;
  for (int64_t value = 0; statistics >> key >> value;) {
    if (key == "inactive_file") caches = value;
  }
  return std::max<int64_t>(0, *limit - std::max<int64_t>(0, *used - caches));
}

/// "0::/a/b" in /proc/self/cgroup: the version 2 group, from the root that is mounted.
std::filesystem::path own_group(const std::string& own_groups) {
  constexpr std::string_view kVersion2 = "0::/";
  std::ifstream file(own_groups);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kVersion2)) return line.substr(kVersion2.size());
  }
  return {};
}

}  // namespace

int64_t available_memory_bytes(const std::string& meminfo, const std::string& own_groups,
                               const std::string& group_root) {
  int64_t available = std::min(free_on_machine(meminfo), free_in_group(group_root));
  std::filesystem::path group = group_root;
  for (const auto& part : own_group(own_groups)) {  // a group's parents limit it, too
    group /= part;
    available = std::min(available, free_in_group(group));
  }
  return available;
}

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t all_pages = 0, resident_pages = 0;
  file >> all_pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

void trim_heap() {
  // With a sanitizer the heap is not glibc's, which would set its own up at the first call, and not
  // for two threads at once.
#ifndef ATTEND_SANITIZE
  malloc_trim(0);
#endif
}

int64_t available_memory_bytes() {
  return available_memory_bytes("/proc/meminfo", "/proc/self/cgroup", "/sys/fs/cgroup");
}

}  // namespace attend
