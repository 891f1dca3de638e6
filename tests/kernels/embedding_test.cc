#include "attend/kernels/embedding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "attend/base/error.h"
#include "tests/support/numbers.h"
#include "tests/support/targets.h"

namespace attend::testing {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

double at(const Tensor& table, int64_t row, int64_t column) {
  return static_cast<double>(table.data<float>()[row * table.columns() + column]);
}

TEST(SinusoidalPositions, FollowThePaper) {
  const Tensor table = sinusoidal_positions(100, 8);
  for (const int64_t position : {0, 1, 7, 99}) {
    for (int64_t i = 0; i < 4; ++i) {
      const double angle =
          static_cast<double>(position) / std::pow(10000.0, 2 * static_cast<double>(i) / 8);
      EXPECT_NEAR(at(table, position, 2 * i), std::sin(angle), 1e-7);
      EXPECT_NEAR(at(table, position, 2 * i + 1), std::cos(angle), 1e-7);
    }
  }
}

// PE(pos + k) = R(k) PE(pos): one matrix of rotations for every pos. It is found from the table
// itself, at position 0, where PE is (0, 1) in every pair.
TEST(SinusoidalPositions, AShiftIsALinearFunction) {
  constexpr int64_t kWidth = 16, kCount = 600;
  const Tensor table = sinusoidal_positions(kCount, kWidth);
  for (const int64_t shift : {1, 2, 10, 123}) {
    for (int64_t pair = 0; pair < kWidth; pair += 2) {
      const double sine = at(table, shift, pair), cosine = at(table, shift, pair + 1);
      for (int64_t position = 0; position + shift < kCount; ++position) {
        const double x = at(table, position, pair), y = at(table, position, pair + 1);
        EXPECT_NEAR(at(table, position + shift, pair), cosine * x + sine * y, 1e-6);
        EXPECT_NEAR(at(table, position + shift, pair + 1), cosine * y - sine * x, 1e-6);
      }
    }
  }
}

// "The wavelengths form a geometric progression from 2π to 10000 · 2π" (§3.5).
TEST(SinusoidalPositions, WavelengthsRunFromTwoPiToTenThousandTimesThat) {
  constexpr int64_t kWidth = 512;
  const Tensor table = sinusoidal_positions(2, kWidth);
  std::vector<double> wavelengths;
  for (int64_t pair = 0; pair < kWidth; pair += 2) {
    const double angle_of_a_step = std::asin(std::min(1.0, at(table, 1, pair)));
    wavelengths.push_back(kTurn / angle_of_a_step);
  }
  EXPECT_NEAR(wavelengths.front(), kTurn, 1e-5);
  const double ratio = std::pow(10000.0, 2.0 / kWidth);
  for (std::size_t i = 1; i < wavelengths.size(); ++i) {
    EXPECT_NEAR(wavelengths[i] / wavelengths[i - 1], ratio, 1e-5);
  }
  EXPECT_NEAR(wavelengths.back() * ratio, 10000 * kTurn, 1.0);
}

TEST(SinusoidalPositions, StayInBoundsFarOut) {
  const Tensor table = sinusoidal_positions(20000, 10);
  for (int64_t pair = 0; pair < 10; pair += 2) {
    const double sine = at(table, 19999, pair), cosine = at(table, 19999, pair + 1);
    EXPECT_NEAR(sine * sine + cosine * cosine, 1.0, 1e-6);
  }
}

TEST(Embedding, ScalesAndAddsPositionsInEveryWidth) {
  const std::vector<int32_t> ids = {2, 0, 2, 1, 2};
  const std::vector<int64_t> offsets = {0, 3, 3, 5}, first = {0, 9, 4};
  const std::vector<int64_t> places = {0, 1, 2, 4, 5};
  for (const int64_t width : {1, 2, 15, 16, 33}) {
    const Tensor table = random_tensor({3, width}, 1), positions = random_tensor({9, width}, 2);
    for_each_instruction_set([&] {
      const Tensor out({5, width}, DType::kFloat32), narrow({5, width}, DType::kBFloat16);
      embedding_forward({.ids = ids,
                         .offsets = offsets,
                         .first_positions = first,
                         .table = table,
                         .scale = 3,
                         .positions = positions,
                         .out = out,
                         .out_compute = narrow});
      for (int64_t row = 0; row < 5; ++row) {
        for (int64_t i = 0; i < width; ++i) {
          const auto token = static_cast<std::size_t>(row);
          const double expected = 3 * at(table, ids[token], i) + at(positions, places[token], i);
          EXPECT_NEAR(at(out, row, i), expected, 1e-6);
          EXPECT_EQ(narrow.data<BFloat16>()[row * width + i].bits,
                    to_bfloat16(out.data<float>()[row * width + i]).bits);
        }
      }
    });
  }
}

TEST(Embedding, RefusesIdsAndPositionsOutside) {
  const Tensor table = Tensor::zeros({3, 4}, DType::kFloat32);
  const Tensor positions = Tensor::zeros({2, 4}, DType::kFloat32);
  const auto embed = [&](const std::vector<int32_t>& ids) {
    const std::vector<int64_t> offsets = {0, static_cast<int64_t>(ids.size())};
    embedding_forward({.ids = ids,
                       .offsets = offsets,
                       .table = table,
                       .positions = positions,
                       .out = Tensor({offsets[1], 4}, DType::kFloat32)});
  };
  EXPECT_NO_THROW(embed({0, 2}));
  EXPECT_NO_THROW(embed({}));
  EXPECT_THROW(embed({3}), Error);
  EXPECT_THROW(embed({-1}), Error);
  EXPECT_THROW(embed({0, 1, 2}), Error);
}

TEST(Embedding, BackwardAddsBothForms) {
  const Tensor one = random_tensor({3, 21}, 1), two = random_tensor({3, 21}, 2);
  const Tensor out({3, 21}, DType::kFloat32);
  embedding_backward({}, one, Tensor(), out);
  EXPECT_EQ(out.to_vector(), one.to_vector());
  embedding_backward({}, Tensor(), two, out);
  EXPECT_EQ(out.to_vector(), two.to_vector());
  embedding_backward({}, one, two, out);
  for (std::size_t i = 0; i < 63; ++i) {
    EXPECT_EQ(out.to_vector()[i], one.to_vector()[i] + two.to_vector()[i]);
  }
}

TEST(ScatterAdd, AddsRepeatedRowsAndKeepsToItsPart) {
  constexpr int64_t kWidth = 19;
  const std::vector<int32_t> ids = {4, 0, 4, 3, 4};
  const Tensor rows = random_tensor({5, kWidth}, 1);
  const auto check = [&](const std::vector<float>& factors) {
    const Tensor whole = random_tensor({6, kWidth}, 2), parts = random_tensor({6, kWidth}, 2);
    std::vector<double> expected;
    for (const float value : whole.to_vector()) expected.push_back(static_cast<double>(value));
    for (std::size_t row = 0; row < ids.size(); ++row) {
      for (int64_t i = 0; i < kWidth; ++i) {
        expected[static_cast<std::size_t>(ids[row] * kWidth + i)] +=
            0.5 * (factors.empty() ? 1 : factors[row]) * at(rows, static_cast<int64_t>(row), i);
      }
    }
    scatter_add(ids, rows, 0.5F, factors, whole, 0, 6);
    EXPECT_LE(relative_error(whole.to_vector(), expected), 1e-6);
    scatter_add(ids, rows, 0.5F, factors, parts, 4, 6);
    scatter_add(ids, rows, 0.5F, factors, parts, 0, 4);
    EXPECT_EQ(bits_of(whole), bits_of(parts));
  };
  for_each_instruction_set([&] {
    check({});
    check({1, 0, 1.25F, 1.25F, 0});
  });
}

}  // namespace
}  // namespace attend::testing
