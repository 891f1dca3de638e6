#include "attend/base/profile.h"

#include <algorithm>
#include <thread>

#include <gtest/gtest.h>

namespace attend {
namespace {

void spend(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

ProfileRow row_of(const std::string& name) {
  for (const ProfileRow& row : profile()) {
    if (row.name == name) return row;
  }
  ADD_FAILURE() << "there is no row " << name;
  return {};
}

TEST(Profile, CallsAndAmountsAddUpOverThreads) {
  start_profile();
  const auto work = [] {
    for (int i = 0; i < 10; ++i) const ProfileScope scope("product", 100, 30);
  };
  std::thread other(work);
  work();
  other.join();
  const ProfileRow row = row_of("product");
  EXPECT_EQ(row.calls, 20);
  EXPECT_EQ(row.flops, 2000);
  EXPECT_EQ(row.bytes, 600);
  EXPECT_GE(row.seconds, 0);
}

TEST(Profile, BytesAreCountedForTheInnermostScope) {
  start_profile();
  profile_bytes(5);  // for none
  {
    const ProfileScope outer("outer", 0, 10);
    {
      const ProfileScope inner("inner");
      profile_bytes(7);
    }
    profile_bytes(1);
  }
  EXPECT_EQ(row_of("outer").bytes, 11);
  EXPECT_EQ(row_of("inner").bytes, 7);
}

TEST(Profile, TheInnerScopesTimeIsTakenOffTheOuterOnes) {
  start_profile();
  {
    const ProfileScope outer("outer");
    spend(20);
    {
      const ProfileScope inner("inner");
      spend(60);
      const ProfileScope innermost("innermost");
      spend(40);
    }
  }
  EXPECT_GE(row_of("inner").seconds, 0.06);
  EXPECT_GE(row_of("innermost").seconds, 0.04);
  EXPECT_GE(row_of("outer").seconds, 0.02);
  // Sleeping may take longer than asked, but each wait is counted once.
  EXPECT_LT(row_of("outer").seconds, row_of("inner").seconds + row_of("innermost").seconds);
  const std::vector<ProfileRow> rows = profile();
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end(),
                             [](const auto& a, const auto& b) { return a.seconds > b.seconds; }));
}

TEST(Profile, IsReset) {
  { const ProfileScope scope("gone"); }
  start_profile();
  EXPECT_TRUE(profile().empty());
  stop_profile();
  { const ProfileScope scope("not timed"); }
  EXPECT_TRUE(profile().empty());
}

TEST(Profile, IsPrintedAsATable) {
  const std::string table =
      format_profile({{.name = "product", .calls = 3, .seconds = 0.75, .flops = 3e9, .bytes = 0},
                      {.name = "sum", .calls = 1, .seconds = 0.25, .flops = 0, .bytes = 1e9}});
  EXPECT_NE(table.find("product"), std::string::npos);
  EXPECT_NE(table.find(" 75.0%       4.0"), std::string::npos) << table;  // GFLOP/s
  EXPECT_NE(table.find(" 25.0%"), std::string::npos);
  EXPECT_NE(table.find(" 4.0\n"), std::string::npos) << table;  // GB/s
  EXPECT_EQ(format_profile({}).find('%'), std::string::npos);
}

}  // namespace
}  // namespace attend
