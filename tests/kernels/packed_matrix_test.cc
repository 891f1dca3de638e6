#include "attend/kernels/packed_matrix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "attend/base/error.h"
#include "attend/kernels/compute_thread.h"
#include "attend/kernels/gemm.h"
#include "tests/support/numbers.h"
#include "tests/support/targets.h"

namespace attend::testing {
namespace {

std::vector<DType> packed_dtypes() {
  std::vector<DType> dtypes = compute_dtypes();
  if (has_int8_arithmetic()) dtypes.push_back(DType::kInt8);
  return dtypes;
}

/// What quantize_rows makes of activations.
std::vector<float> bytes_as_numbers(const Tensor& x) {
  std::vector<uint8_t> bytes(static_cast<std::size_t>(x.count()));
  std::vector<QuantizedRow> rows(static_cast<std::size_t>(x.rows()));
  quantize_rows(x, bytes.data(), x.columns(), rows.data());
  std::vector<float> numbers;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const QuantizedRow& how = rows[i / static_cast<std::size_t>(x.columns())];
    numbers.push_back((static_cast<float>(bytes[i]) - how.zero) * how.scale);
  }
  return numbers;
}

/// In double, of what the dtype makes of both sides.
std::vector<double> expected(const Tensor& x, const Tensor& weight, const Tensor& bias,
                             DType dtype) {
  const auto rounded = [&](const Tensor& matrix, bool activations) {
    if (dtype == DType::kInt8) {
      return activations ? bytes_as_numbers(matrix) : dequantize(quantize(matrix)).to_vector();
    }
    const Tensor converted({matrix.rows(), matrix.columns()}, dtype);
    converted.assign(matrix.to_vector());
    return converted.to_vector();
  };
  const std::vector<float> a = rounded(x, true), b = rounded(weight, false);
  const auto in = static_cast<std::size_t>(x.columns());
  std::vector<double> y;
  for (std::size_t row = 0; row < static_cast<std::size_t>(x.rows()); ++row) {
    for (std::size_t column = 0; column < static_cast<std::size_t>(weight.rows()); ++column) {
      double sum = bias.defined() ? static_cast<double>(bias.data<float>()[column]) : 0.0;
      for (std::size_t i = 0; i < in; ++i) {
        sum += static_cast<double>(a[row * in + i]) * static_cast<double>(b[column * in + i]);
      }
      y.push_back(sum);
    }
  }
  return y;
}

void expect_right(int64_t rows, int64_t in, int64_t out, DType dtype, bool with_bias) {
  SCOPED_TRACE(fmt::format("{} x {} x {}, {}", rows, in, out, name_of(dtype)));
  const Tensor x = random_tensor({rows, in + 3}, 1).slice_columns(1, 1 + in);
  const Tensor weight = random_tensor({out, in}, 2);
  const Tensor bias = with_bias ? random_tensor({out}, 3) : Tensor();
  const Tensor y = random_tensor({rows, out + 2}, 4).slice_columns(1, 1 + out);
  multiply(x, PackedMatrix(weight, dtype), bias, y);
  EXPECT_LE(relative_error(y.to_vector(), expected(x, weight, bias, dtype)), 2e-6);
}

TEST(PackedMatrix, MultipliesAsTheDefinition) {
  for (const DType dtype : packed_dtypes()) {
    for_each_instruction_set([&] {
      for (const int64_t rows : {0, 1, 2, 3, 5, 17, 63, 64, 65, 130}) {
        expect_right(rows, 20, 12, dtype, rows % 2 == 0);
      }
      for (const int64_t in : {1, 3, 16, 129}) expect_right(3, in, 40, dtype, true);
      for (const int64_t out : {1, 2, 1023, 1024, 1025, 2050}) {
        expect_right(9, 16, out, dtype, true);
      }
      expect_right(2, 2048, 33, dtype, false);
    });
  }
}

TEST(PackedMatrix, TakesAndGivesBFloat16) {
  for (const DType dtype : packed_dtypes()) {
    const Tensor x = random_tensor({7, 40}, 1, DType::kBFloat16);
    const Tensor wide({7, 40}, DType::kFloat32);
    wide.assign(x.to_vector());
    const PackedMatrix weight(random_tensor({30, 40}, 2), dtype);
    const Tensor y({7, 30}, DType::kFloat32), rounded({7, 30}, DType::kBFloat16);
    const Tensor as_float({7, 30}, DType::kFloat32);
    multiply(x, weight, {}, y);
    multiply(x, weight, {}, rounded);
    multiply(wide, weight, {}, as_float);
    EXPECT_EQ(bits_of(y), bits_of(as_float));
    EXPECT_LE(relative_error(rounded.to_vector(), y.to_vector()), 4e-3);
  }
}

TEST(PackedMatrix, ARowDoesNotDependOnTheOthers) {
  for (const DType dtype : packed_dtypes()) {
    for (const auto& [in, out] : {std::pair<int64_t, int64_t>{128, 384}, {2048, 65}, {130, 1100}}) {
      const PackedMatrix weight(random_tensor({out, in}, 1), dtype);
      const Tensor bias = random_tensor({out}, 2);
      const Tensor x = random_tensor({200, in}, 3), all({200, out}, DType::kFloat32);
      multiply(x, weight, bias, all);
      for (const int64_t rows : {1, 2, 3, 7, 13, 29, 47, 64, 70}) {
        for (const int64_t first : {0, 5, 100}) {
          const Tensor some({rows, out}, DType::kFloat32);
          multiply(x.slice_rows(first, first + rows), weight, bias, some);
          EXPECT_EQ(bits_of(some), bits_of(all.slice_rows(first, first + rows)))
              << name_of(dtype) << ", " << rows << " rows from " << first;
        }
      }
    }
  }
}

TEST(PackedMatrix, OfQuantizedNumbersIsThatOfTheNumbers) {
  if (!has_int8_arithmetic()) GTEST_SKIP() << "this CPU does not multiply int8";
  const Tensor weight = random_tensor({50, 32}, 1), x = random_tensor({4, 32}, 2);
  const Tensor a({4, 50}, DType::kFloat32), b({4, 50}, DType::kFloat32);
  multiply(x, PackedMatrix(weight, DType::kInt8), {}, a);
  multiply(x, PackedMatrix(quantize(weight)), {}, b);
  EXPECT_EQ(bits_of(a), bits_of(b));
}

TEST(PackedMatrix, HugeTinyAndNoNumbers) {
  for (const DType dtype : packed_dtypes()) {
    const PackedMatrix weight(random_tensor({20, 16}, 1), dtype);
    for (const float size : {1e-30F, 1e30F, 0.0F}) {
      const Tensor x = random_tensor({3, 16}, 2, DType::kFloat32, size);
      const Tensor y({3, 20}, DType::kFloat32);
      multiply(x, weight, {}, y);
      for (const float value : y.to_vector()) EXPECT_TRUE(std::isfinite(value)) << size;
    }
    const Tensor x = random_tensor({3, 16}, 2);
    x.data<float>()[20] = std::numeric_limits<float>::quiet_NaN();
    const Tensor y({3, 20}, DType::kFloat32);
    multiply(x, weight, {}, y);
    const std::vector<float> values = y.to_vector();
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(std::isfinite(values[i]), i / 20 != 1) << i;
    }
  }
}

TEST(PackedMatrix, ServesManyThreads) {
  for (const DType dtype : packed_dtypes()) {
    const PackedMatrix weight(random_tensor({300, 64}, 1), dtype);
    const Tensor x = random_tensor({40, 64}, 2), alone({40, 300}, DType::kFloat32);
    multiply(x, weight, {}, alone);
    std::vector<Tensor> results;
    for (int i = 0; i < 4; ++i) results.emplace_back(Shape{40, 300}, DType::kFloat32);
    std::vector<std::thread> threads;
    for (const Tensor& y : results) {
      threads.emplace_back([&] {
        prepare_compute_thread();
        for (int i = 0; i < 20; ++i) multiply(x, weight, {}, y);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Tensor& y : results) EXPECT_EQ(bits_of(y), bits_of(alone));
  }
}

TEST(PackedMatrix, RefusesWhatDoesNotFit) {
  const PackedMatrix weight(random_tensor({5, 4}, 1), DType::kFloat32);
  const Tensor x = random_tensor({2, 4}, 2), y({2, 5}, DType::kFloat32);
  EXPECT_THROW(multiply(x.slice_columns(0, 3), weight, {}, y), Error);
  EXPECT_THROW(multiply(x, weight, {}, y.slice_columns(0, 4)), Error);
  EXPECT_THROW(multiply(x, weight, random_tensor({4}, 3), y), Error);
  EXPECT_THROW(multiply(x, weight, {}, y.slice_rows(0, 1)), Error);
}

TEST(Quantize, RoundsEachRowToItsOwnScale) {
  for_each_instruction_set([] {
    for (const int64_t columns : {1, 2, 15, 16, 33, 128}) {
      const Tensor x = random_tensor({6, columns}, 5);
      for (int64_t i = 0; i < columns; ++i) x.data<float>()[2 * columns + i] = 0;
      const QuantizedMatrix q = quantize(x);
      const std::vector<float> values = q.values.to_vector(), original = x.to_vector();
      for (int64_t row = 0; row < 6; ++row) {
        const float scale = q.scales.data<float>()[row];
        float most = 0;
        for (int64_t i = 0; i < columns; ++i) {
          const auto at = static_cast<std::size_t>(row * columns + i);
          most = std::max(most, std::abs(values[at]));
          EXPECT_LE(std::abs(values[at] * scale - original[at]), scale * 0.5001F);
        }
        EXPECT_EQ(most, row == 2 ? 0.0F : 127.0F);
      }
    }
  });
}

TEST(Quantize, ActivationsUseAllBytes) {
  for_each_instruction_set([] {
    for (const int64_t columns : {1, 2, 15, 16, 33, 128}) {
      const Tensor x = random_tensor({5, columns}, 5);
      for (int64_t i = 0; i < columns; ++i) {
        float* row = x.data<float>() + i;
        row[0] = std::max(row[0], 0.0F);                     // after a ReLU
        row[columns] = 0;                                    // nothing
        row[2 * columns] = -std::abs(row[2 * columns]) - 1;  // all negative
      }
      const std::vector<float> original = x.to_vector(), found = bytes_as_numbers(x);
      for (std::size_t row = 0; row < 5; ++row) {
        const auto first = original.begin() + static_cast<std::ptrdiff_t>(row) * columns;
        const float most = std::max(0.0F, *std::max_element(first, first + columns));
        const float least = std::min(0.0F, *std::min_element(first, first + columns));
        for (std::size_t i = 0; i < static_cast<std::size_t>(columns); ++i) {
          const std::size_t at = row * static_cast<std::size_t>(columns) + i;
          EXPECT_LE(std::abs(found[at] - original[at]), (most - least) / 255 * 0.501F);
          EXPECT_TRUE(original[at] != 0 || found[at] == 0);
        }
      }
    }
  });
}

}  // namespace
}  // namespace attend::testing
