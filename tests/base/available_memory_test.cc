#include "attend/base/available_memory.h"

#include <limits>

#include <gtest/gtest.h>

#include "tests/io/support.h"

namespace attend {
namespace {

TEST(AvailableMemory, IsWhatTheMachineAndEveryGroupAllow) {
  const TemporaryFolder folder;
  const std::string meminfo = folder / "meminfo", own = folder / "own", root = folder / "groups";
  std::filesystem::create_directories(folder / "groups/a/b");
  const auto available = [&] { return available_memory_bytes(meminfo, own, root); };
  EXPECT_EQ(available(), std::numeric_limits<int64_t>::max()) << "the system says nothing";
  put(meminfo, "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable:   4000 kB\nBuffers: 1 kB\n");
  EXPECT_EQ(available(), 4000 * 1024);
  put(own, "1:cpu:/x\n0::/a/b\n");
  EXPECT_EQ(available(), 4000 * 1024) << "no limits";
  put(root + "/a/memory.max", "1000000\n");
  put(root + "/a/memory.current", "400000\n");
  put(root + "/a/b/memory.max", "max\n");
  put(root + "/a/b/memory.current", "300000\n");
  EXPECT_EQ(available(), 600000) << "a parent's limit";
  put(root + "/a/memory.stat", "anon 1\ninactive_file 100000\nactive_file 2\n");
  EXPECT_EQ(available(), 700000) << "caches can be dropped";
  put(root + "/a/b/memory.max", "250000\n");
  EXPECT_EQ(available(), 0) << "in use beyond the limit";
}

TEST(AvailableMemory, OfThisMachineIsPlausible) {
  EXPECT_GT(available_memory_bytes(), 1 << 20);
  EXPECT_LT(available_memory_bytes(), int64_t{1} << 50);
}

}  // namespace
}  // namespace attend
