#include "attend/data/permutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace attend {
namespace {

std::vector<int64_t> all_of(const Permutation& permutation) {
  std::vector<int64_t> values(permutation.size());
  for (int64_t i = 0; i < permutation.size(); ++i) values[i] = permutation[i];
  return values;
}

/// How far counts are from equal ones, in standard deviations of chi-square: beyond 5 they are not
/// drawn uniformly.
double chi_square_deviation(const std::vector<int64_t>& counts) {
  int64_t total = 0;
  for (const int64_t count : counts) total += count;
  const double expected = static_cast<double>(total) / static_cast<double>(counts.size());
  double chi_square = 0;
  for (const int64_t count : counts) {
    chi_square += (static_cast<double>(count) - expected) * (static_cast<double>(count) - expected);
  }
  const auto freedom = static_cast<double>(counts.size() - 1);
  return (chi_square / expected - freedom) / std::sqrt(2 * freedom);
}

TEST(Permutation, HoldsEveryNumberOnce) {
  std::vector<int64_t> sizes = {1'000, 4'095, 4'096, 4'097, 99'991, 1 << 17, (1 << 17) + 1};
  for (int64_t size = 1; size < 300; ++size) sizes.push_back(size);
  for (const int64_t size : sizes) {
    for (const uint64_t key : {0, 1, 77}) {
      std::vector<int64_t> values = all_of(Permutation(size, key));
      std::sort(values.begin(), values.end());
      for (int64_t i = 0; i < size; ++i) ASSERT_EQ(values[i], i) << size;
    }
  }
}

TEST(Permutation, HoldsNoNumberTwiceWhereThereAreTooManyToTry) {
  constexpr int64_t kSample = 200'000;
  for (const int64_t size : {int64_t{40'000'000}, (int64_t{1} << 40) + 12345}) {
    const Permutation permutation(size, 3);
    std::vector<int64_t> values, counts(50);
    for (int64_t i = 0; i < kSample; ++i) {
      const int64_t value = permutation[size - 1 - i * (size / kSample)];
      ASSERT_TRUE(value >= 0 && value < size);
      values.push_back(value);
      ++counts[value / (size / 50 + 1)];
    }
    std::sort(values.begin(), values.end());
    EXPECT_EQ(std::adjacent_find(values.begin(), values.end()), values.end());
    EXPECT_LT(std::abs(chi_square_deviation(counts)), 5);
  }
}

TEST(Permutation, EveryNumberIsAsLikelyAtEveryPosition) {
  for (const int64_t size : {2, 3, 5, 8, 12, 31}) {
    std::vector<int64_t> counts(size * size);
    for (uint64_t key = 0; key < 5'000; ++key) {
      const Permutation permutation(size, key);
      for (int64_t i = 0; i < size; ++i) ++counts[i * size + permutation[i]];
    }
    EXPECT_LT(std::abs(chi_square_deviation(counts)), 5) << size;
  }
}

TEST(Permutation, EveryOrderIsAsLikely) {
  for (const int64_t size : {3, 4, 5, 6}) {
    std::vector<int64_t> order(size);
    for (int64_t i = 0; i < size; ++i) order[i] = i;
    std::vector<std::vector<int64_t>> orders;
    do {
      orders.push_back(order);
    } while (std::next_permutation(order.begin(), order.end()));
    std::vector<int64_t> counts(orders.size());
    for (uint64_t key = 0; key < 20 * orders.size(); ++key) {
      const auto found = std::lower_bound(orders.begin(), orders.end(), all_of({size, key}));
      ++counts[found - orders.begin()];
    }
    EXPECT_LT(chi_square_deviation(counts), 5) << size;
  }
}

TEST(Permutation, NeighboursAreAsLikelyAsAnyOtherTwo) {
  // By the distance from each number to the one behind it, in 64 classes.
  for (const int64_t size : {1000, 100'003}) {
    std::vector<int64_t> counts(64);
    for (uint64_t key = 0; key < 1'000'000 / static_cast<uint64_t>(size); ++key) {
      const std::vector<int64_t> values = all_of(Permutation(size, key));
      for (int64_t i = 1; i < size; ++i) {
        const int64_t distance = (values[i] - values[i - 1] + size) % size - 1;  // 0 to size - 2
        ++counts[distance * 64 / (size - 1)];
      }
    }
    // Classes differ by one distance in width where size - 1 is no multiple of 64.
    std::vector<int64_t> even;
    for (int64_t i = 0; i < 64; ++i) {
      const int64_t width = ((i + 1) * (size - 1) + 63) / 64 - (i * (size - 1) + 63) / 64;
      even.push_back(counts[i] * (size - 1) / 64 / width);
    }
    EXPECT_LT(std::abs(chi_square_deviation(even)), 5) << size;
  }
}

TEST(Permutation, OrdersOfDifferentKeysHaveNothingInCommon) {
  constexpr int64_t kSize = 100'000;
  for (const uint64_t key : {0, 1, 2, 3}) {
    const Permutation one(kSize, key), two(kSize, key + 1);
    int64_t same = 0;
    double product = 0;
    for (int64_t i = 0; i < kSize; ++i) {
      same += one[i] == two[i] ? 1 : 0;
      product += (static_cast<double>(one[i]) / kSize - 0.5) *
                 (static_cast<double>(two[i]) / kSize - 0.5) * 12 / kSize;
    }
    EXPECT_LT(same, 8);                                                       // 1 is expected
    EXPECT_LT(std::abs(product), 5 / std::sqrt(static_cast<double>(kSize)));  // a correlation
  }
}

// A checkpoint of today must find its data with every later version: this order is a promise.
TEST(Permutation, IsFixedForEver) {
  EXPECT_EQ(all_of({10, 1}), (std::vector<int64_t>{4, 9, 6, 8, 1, 2, 7, 5, 0, 3}));
  const Permutation large(40'000'000, 5);
  EXPECT_EQ((std::vector<int64_t>{large[0], large[1], large[39'999'999]}),
            (std::vector<int64_t>{227'848, 22'863'452, 6'643'446}));
}

}  // namespace
}  // namespace attend
