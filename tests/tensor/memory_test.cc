#include "attend/tensor/memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "attend/base/error.h"

namespace attend {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

TEST(MemoryPool, GivesAFreedBlockToTheNext) {
  for (const int64_t bytes : {int64_t{100}, int64_t{5000}, kMiB, 5 * kMiB}) {
    MemoryPool pool;
    std::byte* first = pool.allocate(bytes).get();
    const auto again = pool.allocate(bytes);
    EXPECT_EQ(again.get(), first) << bytes;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0U);
    std::memset(again.get(), 1, static_cast<std::size_t>(bytes));
  }
}

TEST(MemoryPool, AKeptBlockServesWhatIsALittleSmaller) {
  for (const bool limited : {false, true}) {
    MemoryPool pool;
    if (limited) pool.limit(16 * kMiB);
    pool.allocate(5 * kMiB / 4);
    const int64_t held = pool.held_bytes();
    {
      const auto smaller = pool.allocate(kMiB);
      EXPECT_EQ(pool.bytes_in_use() == held, !limited);
      EXPECT_EQ(pool.held_bytes() == held, !limited);
    }
    const int64_t held_before = pool.held_bytes();
    const auto half = pool.allocate(kMiB / 2);
    EXPECT_GT(pool.held_bytes(), held_before);
  }
}

TEST(MemoryPool, CountsWhatIsInUseAndKept) {
  MemoryPool pool;
  {
    const auto one = pool.allocate(kMiB), two = pool.allocate(kMiB);
    EXPECT_GE(pool.bytes_in_use(), 2 * kMiB);
  }
  EXPECT_EQ(pool.bytes_in_use(), 0);
  EXPECT_GE(pool.held_bytes(), 2 * kMiB);
  EXPECT_GE(pool.peak_bytes(), 2 * kMiB);
  pool.reset_peak();
  EXPECT_EQ(pool.peak_bytes(), 0);
  pool.release();
  EXPECT_EQ(pool.held_bytes(), 0);
}

TEST(MemoryPool, KeepsNoMoreThanItsLimit) {
  MemoryPool pool;
  pool.limit(8 * kMiB);
  for (int64_t bytes = kMiB; bytes < 6 * kMiB; bytes += kMiB / 4) {
    pool.allocate(bytes);
    EXPECT_LE(pool.held_bytes(), 8 * kMiB) << bytes;
  }
}

TEST(MemoryPool, WhatIsInUseMayGoBeyondTheLimit) {
  MemoryPool pool;
  pool.limit(kMiB);
  std::vector<std::shared_ptr<std::byte>> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(pool.allocate(kMiB));
  EXPECT_GE(pool.bytes_in_use(), 4 * kMiB);
}

TEST(MemoryPool, ABlockOutlivesItsPool) {
  std::shared_ptr<std::byte> small, large;
  {
    MemoryPool pool;
    small = pool.allocate(100);
    large = pool.allocate(kMiB);
  }
  std::memset(large.get(), 1, kMiB);
  std::memset(small.get(), 1, 100);
}

TEST(MemoryPool, RefusesWhatNoSystemHas) {
  MemoryPool pool;
  EXPECT_THROW(pool.allocate(-1), Error);
  EXPECT_THROW(pool.allocate(int64_t{1} << 62), Error);
  EXPECT_THROW(pool.allocate(int64_t{1} << 60), Error);
  EXPECT_EQ(pool.bytes_in_use(), 0);
}

}  // namespace
}  // namespace attend
