#include "attend/kernels/activation.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/numbers.h"
#include "tests/support/targets.h"

namespace attend::testing {
namespace {

constexpr ActivationKind kKinds[] = {ActivationKind::kRelu, ActivationKind::kGelu,
                                     ActivationKind::kSilu};

TEST(Activation, ReluIsZeroBelowZero) {
  const Tensor x = Tensor::from({-2, -0.5F, 0, 0.5F, 2}, {1, 5});
  activation_forward(ActivationKind::kRelu, {}, x, x);
  EXPECT_EQ(x.to_vector(), (std::vector<float>{0, 0, 0, 0.5F, 2}));
  const Tensor gradient = Tensor::from({1, 2, 3, 4, 5}, {1, 5});
  activation_backward(ActivationKind::kRelu, {}, x, gradient);
  EXPECT_EQ(gradient.to_vector(), (std::vector<float>{0, 0, 0, 4, 5}));
}

TEST(Activation, AnElementDoesNotDependOnItsPlace) {
  const std::vector<float> numbers = random_values(37, 3, 2);
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    for (const ActivationKind kind : kKinds) {
      for_each_instruction_set([&] {
        const Tensor row({1, 37}, dtype), column({37, 1}, dtype);
        row.assign(numbers);
        column.assign(numbers);
        activation_forward(kind, {}, row, row);
        activation_forward(kind, {}, column, column);
        EXPECT_EQ(bits_of(row), bits_of(column));
      });
    }
  }
}

TEST(Activation, WorksOnSlices) {
  for (const ActivationKind kind : kKinds) {
    const Tensor wide = random_tensor({4, 40}, 5), narrow({4, 19}, DType::kFloat32);
    const Tensor slice = wide.slice_columns(7, 26);
    narrow.assign(slice.to_vector());
    const std::vector<float> before = wide.to_vector();
    activation_forward(kind, {}, slice, slice);
    activation_forward(kind, {}, narrow, narrow);
    EXPECT_EQ(slice.to_vector(), narrow.to_vector());
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (i % 40 < 7 || i % 40 >= 26) {
        EXPECT_EQ(wide.to_vector()[i], before[i]);
      }
    }
  }
}

TEST(Activation, ReluKeepsNotANumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for_each_instruction_set([&] {
    const Tensor x = Tensor::from(std::vector<float>(17, nan), {1, 17});
    activation_forward(ActivationKind::kRelu, {}, x, x);
    for (const float value : x.to_vector()) EXPECT_TRUE(std::isnan(value));
  });
}

TEST(ColumnSums, AddsUpEveryRow) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    for (const int64_t rows : {0, 1, 3, 4, 9, 100}) {
      for (const int64_t columns : {1, 7, 16, 50}) {
        const Tensor x = random_tensor({rows, columns + 3}, 8, dtype).slice_columns(2, 2 + columns);
        const std::vector<float> numbers = x.to_vector();
        std::vector<double> expected(static_cast<std::size_t>(columns), 0.5);
        for (std::size_t i = 0; i < numbers.size(); ++i) {
          expected[i % static_cast<std::size_t>(columns)] += static_cast<double>(numbers[i]);
        }
        for_each_instruction_set([&] {
          const Tensor sums =
              Tensor::from(std::vector<float>(static_cast<std::size_t>(columns), 0.5F), {columns});
          add_column_sums(x, sums);
          EXPECT_LE(relative_error(sums.to_vector(), expected), 1e-6);
        });
      }
    }
  }
}

}  // namespace
}  // namespace attend::testing
