// The functions of math-inl.h, seen through activations and softmax, and the loads and stores of
// vector-inl.h, seen through conversion, on every instruction set.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "attend/kernels/activation.h"
#include "attend/kernels/additive_attention.h"
#include "attend/kernels/softmax.h"
#include "tests/support/numbers.h"
#include "tests/support/targets.h"

namespace attend::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// From -limit to limit, evenly, with tiny and odd ones between.
std::vector<float> sweep(float limit) {
  std::vector<float> values = {0.0F, -0.0F, 1e-38F, -1e-38F, 1e-45F, 1e-6F, -1e-6F, 1e-3F};
  constexpr int kSteps = 20001;
  for (int i = 0; i < kSteps; ++i) {
    values.push_back(limit * (2 * static_cast<float>(i) / (kSteps - 1) - 1));
  }
  return values;
}

std::vector<float> activate(ActivationKind kind, const std::vector<float>& x) {
  const Tensor in = Tensor::from(x, {1, static_cast<int64_t>(x.size())});
  const Tensor out(in.shape(), DType::kFloat32);
  activation_forward(kind, {}, in, out);
  return out.to_vector();
}

std::vector<float> slopes(ActivationKind kind, const std::vector<float>& x) {
  const Tensor saved = Tensor::from(x, {1, static_cast<int64_t>(x.size())});
  const Tensor gradient =
      Tensor::from(std::vector<float>(x.size(), 1.0F), {1, static_cast<int64_t>(x.size())});
  activation_backward(kind, {}, saved, gradient);
  return gradient.to_vector();
}

/// e^(x - max), as softmax computes it: the row's probabilities times their sum.
std::vector<float> exponentials(std::vector<float> x) {
  x.push_back(0.0F);  // the largest
  const Tensor row = Tensor::from(x, {1, static_cast<int64_t>(x.size())});
  const std::vector<int32_t> target = {0};
  cross_entropy(row, target, 0, 1, Tensor());
  std::vector<float> left = row.to_vector();  // softmax leaves exponentials in place
  EXPECT_EQ(left.back(), 1.0F);
  left.pop_back();
  return left;
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

void expect_near(const std::vector<float>& x, const std::vector<float>& found,
                 const std::function<double(double)>& function, double absolute, double relative) {
  double worst = 0;
  float where = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double expected = function(static_cast<double>(x[i]));
    const double error = std::abs(static_cast<double>(found[i]) - expected) /
                         (absolute + relative * std::abs(expected));
    if (!(error <= worst)) {
      worst = error;
      where = x[i];
    }
  }
  EXPECT_LE(worst, 1.0) << "worst at " << where;
}

TEST(Math, Exponential) {
  std::vector<float> x;
  for (const float value : sweep(87.0F)) {
    if (value <= 0) x.push_back(value);
  }
  for_each_instruction_set([&] {
    expect_near(
        x, exponentials(x), [](double value) { return std::exp(value); }, 1e-38, 3e-7);
    EXPECT_EQ(exponentials({-88.0F, -104.0F, -1e30F, -kInfinity}), std::vector<float>(4, 0.0F));
  });
}

TEST(Math, SigmoidThroughSilu) {
  const std::vector<float> x = sweep(100.0F);
  const auto slope = [](double value) {
    return sigmoid(value) * (1 + value * (1 - sigmoid(value)));
  };
  for_each_instruction_set([&] {
    // x σ(x) where σ(x) is subnormal, and so 0, is not more than 88 · 2^-126.
    expect_near(
        x, activate(ActivationKind::kSilu, x), [](double value) { return value * sigmoid(value); },
        1.04e-36, 1e-6);
    expect_near(x, slopes(ActivationKind::kSilu, x), slope, 3e-7, 1e-6);
  });
}

TEST(Math, NormalDistributionThroughGelu) {
  const std::vector<float> x = sweep(15.0F);
  const auto slope = [](double value) {
    return normal_cdf(value) + value * std::exp(-0.5 * value * value) / std::sqrt(2 * M_PI);
  };
  for_each_instruction_set([&] {
    expect_near(
        x, activate(ActivationKind::kGelu, x),
        [](double value) { return value * normal_cdf(value); }, 5e-7, 1e-6);
    expect_near(x, slopes(ActivationKind::kGelu, x), slope, 5e-7, 1e-6);
  });
}

/// tanh(x) through additive attention: keys 0 and x with the score vector w score 0 and w tanh(x);
/// values 0 and 1 give σ(w tanh x).
TEST(Math, TanhThroughAdditiveAttention) {
  const std::vector<float> x = sweep(12.0F);
  const auto count = static_cast<int64_t>(x.size());
  const Tensor q = Tensor::zeros({count, 1}, DType::kFloat32), out({count, 1}, DType::kFloat32);
  const Tensor k = Tensor::zeros({2 * count, 1}, DType::kFloat32);
  const Tensor v = Tensor::zeros({2 * count, 1}, DType::kFloat32);
  std::vector<int64_t> query_offsets{0}, key_offsets{0};
  for (int64_t i = 0; i < count; ++i) {
    k.data<float>()[2 * i + 1] = x[static_cast<std::size_t>(i)];
    v.data<float>()[2 * i + 1] = 1;
    query_offsets.push_back(i + 1);
    key_offsets.push_back(2 * i + 2);
  }
  const Tensor w = Tensor::from({2}, {1, 1});
  const AttentionShape shape{.heads = 1,
                             .key_width = 1,
                             .value_width = 1,
                             .query_offsets = query_offsets,
                             .key_offsets = key_offsets};
  for_each_instruction_set([&] {
    additive_attention_forward(shape, q, k, v, w, out);
    expect_near(
        x, out.to_vector(), [](double value) { return sigmoid(2 * std::tanh(value)); }, 4e-7, 0);
  });
}

TEST(Math, EndsOfTheLine) {
  for_each_instruction_set([&] {
    for (const auto kind : {ActivationKind::kGelu, ActivationKind::kSilu}) {
      const std::vector<float> out = activate(kind, {kNan, kInfinity, 1e30F, -1e30F, -0.0F, 0.0F});
      EXPECT_TRUE(std::isnan(out[0]));
      EXPECT_EQ(out[1], kInfinity);
      EXPECT_EQ(out[2], 1e30F);
      EXPECT_EQ(out[3], 0.0F);
      EXPECT_EQ(out[4], 0.0F);
      EXPECT_EQ(out[5], 0.0F);
      const std::vector<float> slope = slopes(kind, {kNan, 1e15F, -1e15F, 0.0F});
      EXPECT_TRUE(std::isnan(slope[0]));
      EXPECT_EQ(slope[1], 1.0F);
      EXPECT_EQ(slope[2], 0.0F);
      EXPECT_EQ(slope[3], 0.5F);
    }
  });
}

TEST(Convert, RoundsAsToBfloat16OnEveryInstructionSet) {
  std::vector<float> values;  // every upper half with lower halves around a tie and the ends
  for (uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const uint32_t lower : {0x0000U, 0x0001U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU}) {
      values.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  constexpr int64_t kColumns = 393;  // ends within a vector of any length
  while (values.size() % kColumns != 0) values.push_back(1);
  const Shape shape{static_cast<int64_t>(values.size()) / kColumns, kColumns};
  const Tensor wide(shape, DType::kFloat32);
  std::copy(values.begin(), values.end(), wide.data<float>());
  const Tensor narrow(shape, DType::kBFloat16), back(shape, DType::kFloat32);
  for_each_instruction_set([&] {
    convert(wide, narrow);
    convert(narrow, back);
    int64_t wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const BFloat16 expected = to_bfloat16(values[i]);
      const BFloat16 found = narrow.data<BFloat16>()[i];
      wrong += found.bits == expected.bits ? 0 : 1;
      wrong += std::bit_cast<uint32_t>(back.data<float>()[i]) ==
                       std::bit_cast<uint32_t>(to_float(expected))
                   ? 0
                   : 1;
    }
    EXPECT_EQ(wrong, 0);
  });
}

TEST(Convert, AddsAndLeavesTheRestOfASliceAlone) {
  for (const DType from : {DType::kFloat32, DType::kBFloat16}) {
    for (const DType to : {DType::kFloat32, DType::kBFloat16}) {
      const Tensor x = random_tensor({3, 21}, 1, from), whole = random_tensor({3, 30}, 2, to);
      const std::vector<float> added = x.to_vector(), before = whole.to_vector();
      convert(x, whole.slice_columns(4, 25), true);
      const std::vector<float> after = whole.to_vector();
      for (std::size_t row = 0; row < 3; ++row) {
        for (std::size_t column = 0; column < 30; ++column) {
          const std::size_t at = row * 30 + column;
          const bool inside = column >= 4 && column < 25;
          float expected = before[at];
          if (inside) expected += added[row * 21 + column - 4];
          if (to == DType::kBFloat16) expected = to_float(to_bfloat16(expected));
          EXPECT_EQ(after[at], expected) << row << ", " << column;
        }
      }
    }
  }
}

}  // namespace
}  // namespace attend::testing
