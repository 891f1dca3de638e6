#include "attend/kernels/listed_product.h"

#include <numeric>

#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "attend/kernels/gemm.h"
#include "attend/kernels/packed_matrix.h"
#include "tests/support/numbers.h"
#include "tests/support/targets.h"

namespace attend::testing {
namespace {

/// Some rows of `out`, in no order, one of them twice.
std::vector<int32_t> some_rows(int64_t out, int64_t count) {
  std::vector<int32_t> rows;
  for (int64_t i = 0; i < count; ++i) rows.push_back(static_cast<int32_t>((i * 7 + 3) % out));
  if (count > 1) rows.back() = rows.front();
  return rows;
}

/// Columns of `full`.
std::vector<uint32_t> listed_bits(const Tensor& full, const std::vector<int32_t>& listed) {
  std::vector<uint32_t> bits;
  for (int64_t row = 0; row < full.rows(); ++row) {
    for (const int32_t column : listed) {
      bits.push_back(std::bit_cast<uint32_t>(full.data<float>()[row * full.columns() + column]));
    }
  }
  return bits;
}

TEST(ListedProduct, OfInt8IsThePackedProductToTheBit) {
  if (!has_int8_arithmetic()) GTEST_SKIP() << "this CPU does not multiply int8";
  for (const int64_t in : {1, 31, 32, 33, 128, 500}) {
    const QuantizedMatrix weight = quantize(random_tensor({90, in}, 1));
    for (const int64_t rows : {1, 2, 3, 4, 5, 9}) {
      const Tensor x = random_tensor({rows, in + 2}, 2).slice_columns(1, 1 + in);
      const Tensor full({rows, 90}, DType::kFloat32);
      multiply(x, PackedMatrix(weight), {}, full);
      for_each_instruction_set([&] {
        for (const int64_t count : {1, 2, 3, 4, 5, 40}) {
          SCOPED_TRACE(fmt::format("{} x {}, {} listed", rows, in, count));
          const std::vector<int32_t> listed = some_rows(90, count);
          const Tensor y({rows, count}, DType::kFloat32);
          multiply_listed(x, weight, listed, y);
          EXPECT_EQ(bits_of(y), listed_bits(full, listed));
        }
      });
    }
  }
}

TEST(ListedProduct, OfTheGreatestInt8DoesNotOverflow) {
  if (!has_int8_arithmetic()) GTEST_SKIP() << "this CPU does not multiply int8";
  const Tensor ones = Tensor::from(std::vector<float>(4096, -1.0F), {1, 4096});
  const Tensor y({1, 1}, DType::kFloat32);
  multiply_listed(ones, quantize(ones), std::vector<int32_t>{0}, y);
  EXPECT_NEAR(y.data<float>()[0], 4096, 0.01);
}

TEST(ListedProduct, OfFloatsIsTheProduct) {
  for (const DType of_x : {DType::kFloat32, DType::kBFloat16}) {
    for (const DType of_weight : {DType::kFloat32, DType::kBFloat16}) {
      for (const int64_t in : {1, 15, 16, 70}) {
        const Tensor x = random_tensor({5, in}, 1, of_x),
                     weight = random_tensor({40, in}, 2, of_weight);
        const std::vector<float> a = x.to_vector(), b = weight.to_vector();
        const std::vector<int32_t> listed = some_rows(40, 11);
        std::vector<double> expected;
        for (int64_t row = 0; row < 5; ++row) {
          for (const int32_t of : listed) {
            double sum = 0;
            for (int64_t i = 0; i < in; ++i) {
              sum += static_cast<double>(a[static_cast<std::size_t>(row * in + i)]) *
                     static_cast<double>(b[static_cast<std::size_t>(of * in + i)]);
            }
            expected.push_back(sum);
          }
        }
        for_each_instruction_set([&] {
          const Tensor y({5, 11}, DType::kFloat32);
          multiply_listed(x, weight, listed, y);
          EXPECT_LE(relative_error(y.to_vector(), expected), 1e-6);
        });
      }
    }
  }
}

TEST(ListedProduct, ANumberDependsOnItsRowsAlone) {
  const Tensor x = random_tensor({7, 70}, 1), weight = random_tensor({30, 70}, 2);
  std::vector<int32_t> all(30);
  std::iota(all.begin(), all.end(), 0);
  for_each_instruction_set([&] {
    const Tensor full({7, 30}, DType::kFloat32);
    multiply_listed(x, weight, all, full);
    for (const int64_t rows : {1, 2, 3, 4, 6}) {
      const std::vector<int32_t> listed = some_rows(30, 2 * rows + 1);
      const Tensor y({rows, std::ssize(listed)}, DType::kFloat32);
      multiply_listed(x.slice_rows(1, 1 + rows), weight, listed, y);
      EXPECT_EQ(bits_of(y), listed_bits(full.slice_rows(1, 1 + rows), listed));
    }
  });
}

TEST(ListedProduct, WhatDoesNotFitIsRefused) {
  const Tensor x = random_tensor({2, 8}, 1), weight = random_tensor({10, 8}, 2);
  const Tensor y({2, 1}, DType::kFloat32);
  for (const int32_t row : {-1, 10}) {
    EXPECT_THROW(multiply_listed(x, weight, std::vector<int32_t>{row}, y), Error);
  }
  EXPECT_THROW(multiply_listed(x, weight, std::vector<int32_t>{1, 2}, y), Error);
  EXPECT_THROW(multiply_listed(x.slice_columns(0, 7), weight, std::vector<int32_t>{1}, y), Error);
}

}  // namespace
}  // namespace attend::testing
