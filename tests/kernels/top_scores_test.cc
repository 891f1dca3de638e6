#include "attend/kernels/top_scores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "attend/base/error.h"
#include "attend/kernels/gemm.h"
#include "tests/support/numbers.h"
#include "tests/support/targets.h"

namespace attend::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// The k best by sorting: higher scores first, then lower indices; NaN as -inf.
std::vector<int32_t> sorted_best(std::vector<float> row, int64_t k) {
  for (float& value : row) value = std::isnan(value) ? -kInfinity : value;
  std::vector<int32_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return row[static_cast<std::size_t>(a)] > row[static_cast<std::size_t>(b)];
  });
  order.resize(static_cast<std::size_t>(k));
  return order;
}

void expect_best(const std::vector<float>& row) {
  const auto columns = static_cast<int64_t>(row.size());
  for (const int64_t k : {int64_t{1}, int64_t{2}, int64_t{5}, columns}) {
    if (k > columns) continue;
    for_each_instruction_set([&] {
      const TopScores top = top_scores(Tensor::from(row, {1, columns}), k);
      EXPECT_EQ(top.indices, sorted_best(row, k)) << columns << " columns, k " << k;
      for (std::size_t i = 0; i < top.scores.size(); ++i) {
        const float score = row[static_cast<std::size_t>(top.indices[i])];
        EXPECT_EQ(top.scores[i], std::isnan(score) ? -kInfinity : score);
      }
    });
  }
}

TEST(TopScores, AreTheBestInOrder) {
  for (const int64_t columns : {1, 2, 7, 16, 17, 64, 1001}) {
    for (uint64_t seed = 0; seed < 5; ++seed) {
      std::vector<float> row = random_values(columns, seed);
      expect_best(row);
      for (float& value : row) value = std::round(value);  // ties everywhere
      expect_best(row);
      std::sort(row.begin(), row.end());  // every one is better than those before
      expect_best(row);
    }
  }
}

TEST(TopScores, TiesGoToTheLowerIndex) {
  expect_best(std::vector<float>(40, 1.0F));
  expect_best({0.0F, -0.0F, 0.0F, -0.0F});
}

TEST(TopScores, NotANumberAndMinusInfinityComeLast) {
  expect_best({kNan, 1, -kInfinity, 2, kNan, -3});
  expect_best({kNan, kNan, kNan});
  std::vector<float> row(50, -kInfinity);
  row[33] = -5;
  row[48] = kNan;
  expect_best(row);
  row[20] = kInfinity;
  expect_best(row);
}

TEST(TopScores, LogSumsMakeProbabilities) {
  for (const int64_t columns : {1, 5, 33, 1000}) {
    for (const float size : {1.0F, 50.0F, 1e6F}) {
      const Tensor logits = random_tensor({3, columns}, 4, DType::kFloat32, size);
      const TopScores top = top_scores(logits, 1);
      for (int64_t row = 0; row < 3; ++row) {
        const std::vector<float> x = logits.slice_rows(row, row + 1).to_vector();
        const double max = static_cast<double>(*std::max_element(x.begin(), x.end()));
        double sum = 0;
        for (const float value : x) sum += std::exp(static_cast<double>(value) - max);
        const double expected = max + std::log(sum);
        EXPECT_NEAR(top.log_sums[static_cast<std::size_t>(row)], expected,
                    6e-6 * (1 + std::abs(expected)));
      }
    }
  }
}

TEST(TopScores, LogSumsSkipWhatCannotBe) {
  const TopScores top = top_scores(Tensor::from({0, -kInfinity, 0, -kInfinity}, {1, 4}), 2);
  EXPECT_NEAR(top.log_sums[0], std::log(2.0F), 6e-6);
  EXPECT_EQ(top.indices, (std::vector<int32_t>{0, 2}));
}

TEST(TopScores, ARowDoesNotDependOnTheOthers) {
  const Tensor logits = random_tensor({9, 77}, 4);
  const TopScores all = top_scores(logits, 3);
  for (int64_t row = 0; row < 9; ++row) {
    const TopScores one = top_scores(logits.slice_rows(row, row + 1), 3);
    EXPECT_EQ(one.log_sums[0], all.log_sums[static_cast<std::size_t>(row)]);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(one.indices[i], all.indices[static_cast<std::size_t>(row) * 3 + i]);
    }
  }
}

TEST(TopScores, ANumberThatIsNoneShowsInTheLogSum) {
  for (const float bad : {kNan, kInfinity}) {
    std::vector<float> row = random_values(40, 3);
    row[37] = bad;
    for_each_instruction_set([&] {
      EXPECT_FALSE(std::isfinite(top_scores(Tensor::from(row, {1, 40}), 2).log_sums[0]));
    });
  }
}

/// Against the scores made as a whole.
void expect_projected_best(int64_t rows, int64_t in, int64_t vocabulary, int64_t k, DType dtype) {
  SCOPED_TRACE(fmt::format("{} rows, {} of {}, {}", rows, k, vocabulary, name_of(dtype)));
  const Tensor x = random_tensor({rows, in}, 1);
  const PackedMatrix weight(random_tensor({vocabulary, in}, 2), dtype);
  const Tensor logits({rows, vocabulary}, DType::kFloat32);
  multiply(x, weight, {}, logits);
  const std::vector<int32_t> wanted = {static_cast<int32_t>(vocabulary - 1), 0};
  TopScores whole, tiled;
  top_scores(logits, {.best = k, .scores = wanted}, whole);
  project_top_scores(x, weight, {.best = k, .scores = wanted}, tiled);
  EXPECT_EQ(tiled.indices, whole.indices);
  EXPECT_EQ(tiled.scores, whole.scores);
  EXPECT_EQ(tiled.wanted, whole.wanted);
  for (std::size_t row = 0; row < whole.log_sums.size(); ++row) {
    EXPECT_EQ(tiled.wanted[2 * row + 1],
              logits.data<float>()[row * static_cast<std::size_t>(vocabulary)]);
  }
  for (std::size_t row = 0; row < whole.log_sums.size(); ++row) {
    EXPECT_NEAR(tiled.log_sums[row], whole.log_sums[row],
                1e-5 * (1 + std::abs(whole.log_sums[row])));
  }
}

TEST(TopScores, OfAProductAreThoseOfItsRows) {
  std::vector<DType> dtypes = compute_dtypes();
  if (has_int8_arithmetic()) dtypes.push_back(DType::kInt8);
  for (const DType dtype : dtypes) {
    for_each_instruction_set([&] {
      expect_projected_best(1, 16, 50, 3, dtype);
      expect_projected_best(70, 24, 1024, 10, dtype);
      expect_projected_best(65, 32, 2100, 10, dtype);
      expect_projected_best(3, 8, 1025, 1025, dtype);
      expect_projected_best(0, 8, 30, 2, dtype);
    });
  }
}

// In a later tile: far above what came before, or not a number.
TEST(TopScores, OfAProductHoldForScoresFarApart) {
  for (const float last : {50.0F, 1000.0F, -1000.0F, kNan, kInfinity}) {
    for_each_instruction_set([&] {
      const int64_t vocabulary = 2500;
      Tensor weight = random_tensor({vocabulary, 4}, 2);
      for (int64_t i = 0; i < 4; ++i) weight.data<float>()[2400 * 4 + i] = last;
      const Tensor x = Tensor::from({1, 1, 1, 1}, {1, 4});
      TopScores top;
      const PackedMatrix packed(weight, DType::kFloat32);
      project_top_scores(x, packed, {.best = 5}, top);
      TopScores without_sums;
      project_top_scores(x, packed, {.best = 5, .log_sums = false}, without_sums);
      if (!std::isfinite(last)) {
        EXPECT_FALSE(std::isfinite(top.log_sums[0])) << last;
        EXPECT_FALSE(std::isfinite(without_sums.log_sums[0])) << last;
        return;
      }
      EXPECT_EQ(without_sums.indices, top.indices);
      EXPECT_EQ(without_sums.scores, top.scores);
      EXPECT_EQ(without_sums.log_sums[0], top.scores[0]);
      std::vector<double> logits;
      double sum = 0;
      for (int64_t row = 0; row < vocabulary; ++row) {
        const float* w = weight.data<float>() + row * 4;
        logits.push_back(static_cast<double>(w[0] + w[1] + w[2] + w[3]));
      }
      const double most = *std::max_element(logits.begin(), logits.end());
      for (const double each : logits) sum += std::exp(each - most);
      EXPECT_NEAR(top.log_sums[0], most + std::log(sum), 1e-5 * (1 + std::abs(most))) << last;
      const std::vector<float> row(logits.begin(), logits.end());
      EXPECT_EQ(top.indices[0], sorted_best(row, 1)[0]);
      EXPECT_EQ(std::set<int32_t>(top.indices.begin(), top.indices.end()).size(), 5U);
    });
  }
}

TEST(TopScores, RefuseMoreThanThereAre) {
  const Tensor logits = random_tensor({1, 4}, 1);
  EXPECT_THROW(top_scores(logits, 5), Error);
  TopScores top;
  const std::vector<int32_t> outside = {4};
  EXPECT_THROW(top_scores(logits, {.scores = outside}, top), Error);
}

}  // namespace
}  // namespace attend::testing
