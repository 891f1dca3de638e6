#include "attend/kernels/rotary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "attend/base/error.h"
#include "tests/kernels/attention_reference.h"

namespace attend {
namespace {

std::vector<double> turned(const Tensor& x, const std::vector<int32_t>& positions, int64_t heads,
                           double direction) {
  const std::vector<float> values = x.to_vector();
  std::vector<double> out(values.size());
  const auto width = static_cast<std::size_t>(x.columns() / heads);
  for (std::size_t i = 0; i < values.size(); i += 2) {
    const int32_t position = positions[i / static_cast<std::size_t>(x.columns())];
    const double angle =
        direction * position *
        std::pow(10000.0, -static_cast<double>(i % width) / static_cast<double>(width));
    out[i] = values[i] * std::cos(angle) - values[i + 1] * std::sin(angle);
    out[i + 1] = values[i] * std::sin(angle) + values[i + 1] * std::cos(angle);
  }
  return out;
}

TEST(Rotary, MatchesTheFormulaAndTurnsBack) {
  std::vector<int32_t> positions{0, 1, 2, 3, 0, 1, 700, 2500, 17};
  for (const int64_t width : {2, 4, 6, 10, 32, 34, 64}) {
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      const double bound = dtype == DType::kFloat32 ? 1e-6 : 3e-3;
      const Tensor wide = random_tensor(9, 3 * width + 4, dtype, 1);
      const Tensor x = wide.slice_columns(4, 3 * width + 4), out({9, 3 * width}, dtype);
      const std::vector<float> before = x.to_vector();
      for_each_target([&] {
        x.assign(before);
        rotary_forward(x, positions, 3, out);
        EXPECT_LT(relative_error(out.to_vector(), turned(x, positions, 3, 1)), bound);
        rotary_forward(x, positions, 3, x);
        EXPECT_EQ(x.to_vector(), out.to_vector());
        rotary_backward(x, positions, 3, x);
        EXPECT_LT(relative_error(x.to_vector(), {before.begin(), before.end()}), 2 * bound);
      });
    }
  }
}

// The gradient of a turn is the turn back: <turn(x), g> = <x, backward(g)>.
TEST(Rotary, BackwardIsTheTranspose) {
  const std::vector<int32_t> positions{5, 9};
  const Tensor x = random_tensor(2, 24, DType::kFloat32, 1), g = random_tensor(2, 24, x.dtype(), 2);
  const Tensor out({2, 24}, DType::kFloat32), d_x({2, 24}, DType::kFloat32);
  rotary_forward(x, positions, 2, out);
  rotary_backward(g, positions, 2, d_x);
  const auto inner = [](const Tensor& a, const Tensor& b) {
    const auto from = a.to_vector(), to = b.to_vector();
    return std::inner_product(from.begin(), from.end(), to.begin(), 0.0);
  };
  EXPECT_NEAR(inner(out, g), inner(x, d_x), 1e-4);
}

// What rotary positions are for: scores depend on the distance alone.
TEST(Rotary, InnerProductsDependOnTheDistance) {
  const Tensor x = random_tensor(1, 16, DType::kFloat32, 1), y = random_tensor(1, 16, x.dtype(), 2);
  const Tensor a({1, 16}, DType::kFloat32), b({1, 16}, DType::kFloat32);
  const auto score = [&](int32_t from, int32_t to) {
    rotary_forward(x, std::vector<int32_t>{from}, 1, a);
    rotary_forward(y, std::vector<int32_t>{to}, 1, b);
    const auto p = a.to_vector(), q = b.to_vector();
    return std::inner_product(p.begin(), p.end(), q.begin(), 0.0);
  };
  EXPECT_NEAR(score(3, 10), score(103, 110), 1e-4);
  EXPECT_GT(std::abs(score(3, 10) - score(3, 11)), 1e-3);
}

TEST(Rotary, PositionsStartAgainWithEverySequence) {
  EXPECT_EQ(positions_in_sequences(std::vector<int64_t>{0, 3, 3, 5}),
            (std::vector<int32_t>{0, 1, 2, 0, 1}));
  EXPECT_TRUE(positions_in_sequences(std::vector<int64_t>{0}).empty());
}

TEST(Rotary, RefusesWhatDoesNotFit) {
  const Tensor x = random_tensor(2, 12, DType::kFloat32, 1), out({2, 12}, DType::kFloat32);
  const std::vector<int32_t> positions{0, 1}, negative{0, -1}, one{0};
  EXPECT_THROW(rotary_forward(x, positions, 4, out), Error);  // a width of 3
  EXPECT_THROW(rotary_forward(x, positions, 5, out), Error);
  EXPECT_THROW(rotary_forward(x, one, 2, out), Error);
  EXPECT_THROW(rotary_forward(x, negative, 2, out), Error);
  EXPECT_THROW(rotary_forward(x, positions, 2, Tensor({2, 10}, DType::kFloat32)), Error);
}

}  // namespace
}  // namespace attend
