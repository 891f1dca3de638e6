#include "attend/kernels/norm.h"

#include <gtest/gtest.h>

#include "tests/support/numbers.h"
#include "tests/support/targets.h"

namespace attend::testing {
namespace {

std::vector<double> expected_norm(const std::vector<float>& x, const std::vector<float>& gain,
                                  const std::vector<float>& bias) {
  const std::size_t columns = gain.size();
  std::vector<double> out;
  for (std::size_t first = 0; first < x.size(); first += columns) {
    double mean = 0, variance = 0;
    for (std::size_t i = 0; i < columns; ++i) mean += static_cast<double>(x[first + i]);
    mean /= static_cast<double>(columns);
    for (std::size_t i = 0; i < columns; ++i) {
      const double off = static_cast<double>(x[first + i]) - mean;
      variance += off * off;
    }
    variance /= static_cast<double>(columns);
    for (std::size_t i = 0; i < columns; ++i) {
      const double off = static_cast<double>(x[first + i]) - mean;
      out.push_back(off / std::sqrt(variance + static_cast<double>(kNormEpsilon)) *
                        static_cast<double>(gain[i]) +
                    static_cast<double>(bias[i]));
    }
  }
  return out;
}

TEST(LayerNorm, AgreesWithDoublesForAnyWidth) {
  for (const int64_t columns : {1, 2, 6, 15, 16, 17, 64, 130}) {
    const Tensor x = random_tensor({5, columns}, 1), gain = random_tensor({columns}, 2);
    const Tensor bias = random_tensor({columns}, 3);
    const std::vector<double> expected =
        expected_norm(x.to_vector(), gain.to_vector(), bias.to_vector());
    for_each_instruction_set([&] {
      const Tensor out({5, columns}, DType::kFloat32), narrow({5, columns}, DType::kBFloat16);
      residual_norm_forward({.x = x,
                             .gain = gain,
                             .bias = bias,
                             .out = out,
                             .out_compute = narrow,
                             .statistics = Tensor({5, 2}, DType::kFloat32)});
      EXPECT_LE(relative_error(out.to_vector(), expected), 1e-6) << columns;
      for (int64_t i = 0; i < out.count(); ++i) {
        EXPECT_EQ(narrow.data<BFloat16>()[i].bits, to_bfloat16(out.data<float>()[i]).bits);
      }
    });
  }
}

TEST(LayerNorm, SurvivesHugeOffsetsAndConstantRows) {
  constexpr int64_t kColumns = 48;
  std::vector<float> x = random_values(kColumns, 4);
  for (float& value : x) value += 1e4F;
  x.resize(2 * kColumns, 7.0F);  // the second row is constant: only the bias is left
  const Tensor gain = random_tensor({kColumns}, 5), bias = random_tensor({kColumns}, 6);
  const Tensor out({2, kColumns}, DType::kFloat32);
  residual_norm_forward({.x = Tensor::from(x, {2, kColumns}),
                         .gain = gain,
                         .bias = bias,
                         .out = out,
                         .statistics = Tensor({2, 2}, DType::kFloat32)});
  EXPECT_LE(relative_error(out.to_vector(), expected_norm(x, gain.to_vector(), bias.to_vector())),
            1e-3);
  EXPECT_EQ(out.slice_rows(1, 2).to_vector(), bias.to_vector());
}

TEST(ResidualNorm, IsTheNormOfTheSum) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    constexpr int64_t kRows = 3, kColumns = 21;
    const Tensor x = random_tensor({kRows, kColumns}, 1);
    const Tensor y = random_tensor({kRows, kColumns}, 2, dtype);
    const Tensor gain = random_tensor({kColumns}, 3), bias = random_tensor({kColumns}, 4);
    const Tensor sum({kRows, kColumns}, DType::kFloat32),
        out = Tensor::zeros(sum.shape(), DType::kFloat32);
    const Tensor statistics({kRows, 2}, DType::kFloat32);
    residual_norm_forward({.x = x,
                           .y = y,
                           .gain = gain,
                           .bias = bias,
                           .sum = sum,
                           .out = out,
                           .statistics = statistics});
    const std::vector<float> a = x.to_vector(), b = y.to_vector(), total = sum.to_vector();
    for (std::size_t i = 0; i < total.size(); ++i) EXPECT_EQ(total[i], a[i] + b[i]);

    const Tensor again(sum.shape(), DType::kFloat32);
    residual_norm_forward(
        {.x = sum, .gain = gain, .bias = bias, .out = again, .statistics = statistics});
    EXPECT_EQ(bits_of(out), bits_of(again));
    again.zero();  // without keeping the sum
    residual_norm_forward(
        {.x = x, .y = y, .gain = gain, .bias = bias, .out = again, .statistics = statistics});
    EXPECT_EQ(bits_of(out), bits_of(again));
  }
}

TEST(ResidualNorm, ARowDoesNotDependOnTheOthers) {
  constexpr int64_t kRows = 9, kColumns = 35;
  const Tensor x = random_tensor({kRows, kColumns}, 1), y = random_tensor({kRows, kColumns}, 2);
  const Tensor gain = random_tensor({kColumns}, 3), bias = random_tensor({kColumns}, 4);
  const auto norm = [&](int64_t first, int64_t last) {
    const Tensor out({last - first, kColumns}, DType::kFloat32);
    residual_norm_forward({.x = x.slice_rows(first, last),
                           .y = y.slice_rows(first, last),
                           .gain = gain,
                           .bias = bias,
                           .out = out,
                           .statistics = Tensor({last - first, 2}, DType::kFloat32)});
    return out;
  };
  const Tensor all = norm(0, kRows);
  for (int64_t row = 0; row < kRows; ++row) {
    EXPECT_EQ(bits_of(norm(row, row + 1)), bits_of(all.slice_rows(row, row + 1)));
  }
}

TEST(ResidualNorm, BackwardAddsWhereAsked) {
  constexpr int64_t kRows = 3, kColumns = 20;
  const Tensor d_sum = random_tensor({kRows, kColumns}, 1),
               dx = random_tensor({kRows, kColumns}, 2);
  const std::vector<float> before = dx.to_vector(), flow = d_sum.to_vector();
  residual_norm_backward({.d_sum = d_sum, .dx = dx, .accumulate_dx = true});
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(dx.to_vector()[i], before[i] + flow[i]);
  }
  residual_norm_backward({.d_sum = d_sum, .dx = dx});
  EXPECT_EQ(dx.to_vector(), flow);
  residual_norm_backward({.d_sum = dx, .dx = dx});  // in place
  EXPECT_EQ(dx.to_vector(), flow);
}

}  // namespace
}  // namespace attend::testing
