#include "attend/kernels/dropout.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attend/kernels/activation.h"
#include "attend/kernels/embedding.h"
#include "attend/kernels/norm.h"
#include "tests/support/numbers.h"
#include "tests/support/targets.h"

namespace attend::testing {
namespace {

/// The mask as philox4x32 defines it, an element at a time.
float expected_factor(const Dropout& dropout, int64_t row, int64_t column) {
  const int64_t group = column / 128, word = column % 128 / 32, half = column % 32 / 16;
  const auto words = philox4x32(
      {static_cast<uint32_t>(group * 16 + column % 16), static_cast<uint32_t>(row), dropout.key.op,
       dropout.key.lane},
      {static_cast<uint32_t>(dropout.key.seed), static_cast<uint32_t>(dropout.key.seed >> 32)});
  const uint32_t bits = words[static_cast<std::size_t>(word)];
  const uint32_t drawn = half == 1 ? bits >> 16 : bits & 0xFFFFU;
  return drawn < dropout.threshold() ? 0.0F : dropout.scale();
}

/// The mask that a kernel applied: dropout(relu(1)).
std::vector<float> mask(const Dropout& dropout, int64_t rows, int64_t columns) {
  const Tensor ones({rows, columns}, DType::kFloat32);
  ones.assign(std::vector<float>(static_cast<std::size_t>(rows * columns), 1.0F));
  activation_forward(ActivationKind::kRelu, dropout, ones, ones);
  return ones.to_vector();
}

TEST(Dropout, IsPhiloxOnEveryInstructionSet) {
  for (const int64_t columns : {1, 15, 16, 33, 128, 129, 400}) {
    const Dropout dropout{0.3F, {0xFEDCBA9876543210, 7, 12345}};
    std::vector<float> expected;
    for (int64_t row = 0; row < 5; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        expected.push_back(expected_factor(dropout, row, column));
      }
    }
    for_each_instruction_set([&] { EXPECT_EQ(mask(dropout, 5, columns), expected) << columns; });
  }
}

TEST(Dropout, EveryOpDrawsTheSameMask) {
  constexpr int64_t kRows = 4, kColumns = 70;
  const Dropout dropout{0.4F, {31, 2, 9}};
  const std::vector<float> expected = mask(dropout, kRows, kColumns);
  const Tensor ones({kRows, kColumns}, DType::kFloat32), out({kRows, kColumns}, DType::kFloat32);
  ones.assign(std::vector<float>(static_cast<std::size_t>(kRows * kColumns), 1.0F));

  residual_norm_forward({.x = Tensor::zeros({kRows, kColumns}, DType::kFloat32),
                         .y = ones,
                         .dropout = dropout,
                         .sum = out});
  EXPECT_EQ(out.to_vector(), expected) << "residual";
  residual_norm_backward({.dropout = dropout,
                          .d_sum = ones,
                          .dx = Tensor({kRows, kColumns}, DType::kFloat32),
                          .dy = out});
  EXPECT_EQ(out.to_vector(), expected) << "residual, backward";

  const std::vector<int32_t> ids(kRows, 0);
  const std::vector<int64_t> offsets = {0, 3, kRows};
  embedding_forward({.ids = ids,
                     .offsets = offsets,
                     .table = ones.slice_rows(0, 1),
                     .dropout = dropout,
                     .out = out});
  EXPECT_EQ(out.to_vector(), expected) << "embedding";
  embedding_backward(dropout, ones, Tensor(), out);
  EXPECT_EQ(out.to_vector(), expected) << "embedding, backward";
}

TEST(Dropout, DropsTheShareAskedForAndKeepsTheMean) {
  for (const float rate : {0.01F, 0.1F, 0.3F, 0.5F, 0.9F}) {
    constexpr int64_t kRows = 500, kColumns = 513;
    const std::vector<float> drawn = mask({rate, {1, 0, 4}}, kRows, kColumns);
    const double count = kRows * kColumns, expected = static_cast<double>(rate);
    double dropped = 0, sum = 0;
    for (const float factor : drawn) {
      dropped += factor == 0.0F ? 1 : 0;
      sum += static_cast<double>(factor);
    }
    const double deviation = std::sqrt(expected * (1 - expected) / count);
    EXPECT_NEAR(dropped / count, expected, 4 * deviation) << rate;
    EXPECT_NEAR(sum / count, 1.0, 4 * deviation / (1 - expected)) << rate;
  }
}

TEST(Dropout, NeighboursAreIndependent) {
  constexpr int64_t kRows = 400, kColumns = 256;
  const std::vector<float> drawn = mask({0.5F, {8, 1, 0}}, kRows, kColumns);
  for (const std::size_t distance : {1, 16, 32, 128, 256}) {  // lane, half, word, group, row
    double same = 0;
    for (std::size_t i = 0; i + distance < drawn.size(); ++i) {
      same += (drawn[i] == 0.0F) == (drawn[i + distance] == 0.0F) ? 1 : 0;
    }
    const auto pairs = static_cast<double>(drawn.size() - distance);
    EXPECT_NEAR(same / pairs, 0.5, 4 * 0.5 / std::sqrt(pairs)) << distance;
  }
}

TEST(Dropout, EveryPartOfTheKeyMatters) {
  const RandomKey key{3, 1, 2};
  const std::vector<float> plain = mask({0.5F, key}, 3, 100);
  EXPECT_EQ(plain, mask({0.5F, key}, 3, 100));
  for (const RandomKey& other : {RandomKey{4, 1, 2}, RandomKey{3 + (uint64_t{1} << 40), 1, 2},
                                 RandomKey{3, 2, 2}, RandomKey{3, 1, 3}}) {
    EXPECT_NE(plain, mask({0.5F, other}, 3, 100));
  }
}

TEST(Dropout, ARowIsKeptOrDroppedAsItsFirstElementIs) {
  const Dropout dropout{0.3F, {0xFEDCBA9876543210, 7, 12345}};
  const std::vector<float> drawn = mask(dropout, 200, 1);
  for (int64_t row = 0; row < 200; ++row) {
    EXPECT_EQ(dropout.keeps(row), drawn[static_cast<std::size_t>(row)] > 0) << row;
    EXPECT_TRUE(Dropout{}.keeps(row));
  }
}

TEST(Dropout, ALongerRowBeginsTheSame) {
  const Dropout dropout{0.5F, {3, 1, 2}};
  std::vector<float> longer = mask(dropout, 1, 300);
  longer.resize(130);
  EXPECT_EQ(longer, mask(dropout, 1, 130));
}

}  // namespace
}  // namespace attend::testing
