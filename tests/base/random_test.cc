#include "attend/base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace attend {
namespace {

// The known answers published with Random123 (kat_vectors, philox4x32 10 rounds).
TEST(Philox, MatchesThePublishedVectors) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomGenerator, IsAFunctionOfSeedAndStream) {
  RandomGenerator one(7, 1), same(7, 1), other_stream(7, 2), other_seed(8, 1);
  const uint64_t first = one.next_uint64();
  EXPECT_EQ(first, same.next_uint64());
  EXPECT_NE(first, other_stream.next_uint64());
  EXPECT_NE(first, other_seed.next_uint64());
}

TEST(RandomGenerator, DrawsIndicesBelowTheBound) {
  RandomGenerator random(1);
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random.uniform_index(7));
  EXPECT_EQ(seen.size(), 7U);
  EXPECT_EQ(*seen.rbegin(), 6U);
}

TEST(RandomGenerator, NormalHasMeanZeroAndVarianceOne) {
  RandomGenerator random(3);
  double sum = 0, squares = 0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double drawn = random.normal();
    ASSERT_TRUE(std::isfinite(drawn));
    sum += drawn;
    squares += drawn * drawn;
  }
  EXPECT_NEAR(sum / kDraws, 0.0, 0.02);
  EXPECT_NEAR(squares / kDraws, 1.0, 0.02);
}

}  // namespace
}  // namespace attend
