#include "attend/kernels/gemm.h"

#include <gtest/gtest.h>

#include <optional>

#include "attend/base/error.h"
#include "tests/support/numbers.h"

namespace attend::testing {
namespace {

struct Product {
  int64_t m, n, k;
  bool transpose_a = false, transpose_b = false, bias = false, accumulate = false;
  bool strided = false;  ///< every matrix is a slice of a wider one
  DType in = DType::kFloat32, out = DType::kFloat32;
};

std::string describe(const Product& p) {
  return fmt::format("{} x {} x {}{}{}{}{}{} {} -> {}", p.m, p.n, p.k, p.transpose_a ? " A'" : "",
                     p.transpose_b ? " B'" : "", p.bias ? " bias" : "",
                     p.accumulate ? " accumulate" : "", p.strided ? " strided" : "", name_of(p.in),
                     name_of(p.out));
}

/// A random matrix, perhaps as a slice of a wider one.
Tensor make(int64_t rows, int64_t columns, DType dtype, bool strided, uint64_t seed) {
  const int64_t extra = strided ? 5 : 0;
  const Tensor whole = random_tensor({rows, columns + extra}, seed, dtype);
  return strided ? whole.slice_columns(2, 2 + columns) : whole;
}

/// The same in double, one element after the other.
std::vector<double> expected(const Product& p, const Tensor& a, const Tensor& b, const Tensor& c,
                             const Tensor* bias) {
  const std::vector<float> x = a.to_vector(), y = b.to_vector(), old = c.to_vector();
  const std::vector<float> added = bias != nullptr ? bias->to_vector() : std::vector<float>();
  std::vector<double> out;
  for (int64_t row = 0; row < p.m; ++row) {
    for (int64_t column = 0; column < p.n; ++column) {
      const auto at = static_cast<std::size_t>(row * p.n + column);
      double sum = p.accumulate ? static_cast<double>(old[at]) : 0.0;
      if (p.bias) sum += static_cast<double>(added[static_cast<std::size_t>(column)]);
      for (int64_t i = 0; i < p.k; ++i) {
        const auto left = static_cast<std::size_t>(p.transpose_a ? i * p.m + row : row * p.k + i);
        const auto right =
            static_cast<std::size_t>(p.transpose_b ? column * p.k + i : i * p.n + column);
        sum += static_cast<double>(x[left]) * static_cast<double>(y[right]);
      }
      out.push_back(sum);
    }
  }
  return out;
}

void expect_right(const Product& p) {
  SCOPED_TRACE(describe(p));
  const Tensor a = make(p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.in, p.strided, 1);
  const Tensor b = make(p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, p.in, p.strided, 2);
  const Tensor c = make(p.m, p.n, p.out, p.strided, 3);
  const std::optional<Tensor> bias =
      p.bias ? std::optional<Tensor>(random_tensor({p.n}, 4)) : std::nullopt;
  const Tensor* added = bias ? &*bias : nullptr;
  const std::vector<double> reference = expected(p, a, b, c, added);
  gemm(a, p.transpose_a ? Transpose::kYes : Transpose::kNo, b,
       p.transpose_b ? Transpose::kYes : Transpose::kNo, c,
       {.bias = added, .accumulate = p.accumulate});
  EXPECT_LE(relative_error(c.to_vector(), reference), p.out == DType::kFloat32 ? 1e-6 : 4e-3);
}

/// Pairs of operand and result dtypes that this machine has.
std::vector<std::pair<DType, DType>> dtype_pairs() {
  std::vector<std::pair<DType, DType>> pairs = {{DType::kFloat32, DType::kFloat32}};
  if (has_bfloat16_arithmetic()) {
    pairs.emplace_back(DType::kBFloat16, DType::kFloat32);
    pairs.emplace_back(DType::kBFloat16, DType::kBFloat16);
  }
  return pairs;
}

TEST(Gemm, AgreesWithDoubles) {
  for (const auto& [in, out] : dtype_pairs()) {
    for (unsigned bits = 0; bits < 32; ++bits) {
      Product p{.m = 7, .n = 9, .k = 13, .in = in, .out = out};
      p.transpose_a = (bits & 1U) != 0;
      p.transpose_b = (bits & 2U) != 0;
      p.bias = (bits & 4U) != 0;
      p.accumulate = (bits & 8U) != 0;
      p.strided = (bits & 16U) != 0;
      expect_right(p);
    }
  }
}

TEST(Gemm, OddSizes) {
  const int64_t sizes[] = {1, 2, 3, 17, 64, 65};
  for (const auto& [in, out] : dtype_pairs()) {
    for (const int64_t m : sizes) {
      for (const int64_t n : sizes) {
        for (const int64_t k : sizes) {
          Product p{.m = m, .n = n, .k = k, .in = in, .out = out};
          p.transpose_b = (m + n + k) % 2 == 0;
          p.transpose_a = (m + n) % 3 == 0;
          p.bias = m % 2 == 1;
          p.accumulate = n % 2 == 1;
          p.strided = k % 2 == 1;
          expect_right(p);
        }
      }
    }
  }
}

TEST(Gemm, OneRowFromAColumnAndBack) {
  for (const auto& [in, out] : dtype_pairs()) {
    for (const bool strided : {false, true}) {
      expect_right(
          {.m = 1, .n = 5, .k = 1, .bias = true, .strided = strided, .in = in, .out = out});
      expect_right({.m = 1,
                    .n = 5,
                    .k = 8,
                    .transpose_a = true,
                    .accumulate = true,
                    .strided = strided,
                    .in = in,
                    .out = out});
      expect_right({.m = 6, .n = 1, .k = 1, .transpose_b = true, .in = in, .out = out});
    }
  }
}

TEST(Gemm, NothingTimesNothing) {
  for (const auto& [in, out] : dtype_pairs()) {
    for (const bool accumulate : {false, true}) {
      for (const bool bias : {false, true}) {
        for (const int64_t m : {0, 1, 3}) {
          for (const int64_t n : {0, 4}) {
            expect_right({.m = m,
                          .n = n,
                          .k = 0,
                          .bias = bias,
                          .accumulate = accumulate,
                          .in = in,
                          .out = out});
          }
        }
        expect_right({.m = 0, .n = 4, .k = 3, .bias = bias, .accumulate = accumulate, .in = in});
      }
    }
  }
}

TEST(Gemm, LeavesWhatLiesBesideASliceAlone) {
  const Tensor whole = random_tensor({6, 12}, 9);
  const std::vector<float> before = whole.to_vector();
  gemm(random_tensor({6, 5}, 1), Transpose::kNo, random_tensor({5, 4}, 2), Transpose::kNo,
       whole.slice_columns(3, 7));
  const std::vector<float> after = whole.to_vector();
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool inside = i % 12 >= 3 && i % 12 < 7;
    EXPECT_EQ(before[i] == after[i], !inside) << i;
  }
}

// A translation does not depend on its batch (contract 6) because of this.
TEST(Gemm, ARowDoesNotDependOnTheNumberOfRows) {
  struct Size {
    int64_t n, k;
  };
  for (const Size size : {Size{3, 5}, {48, 16}, {128, 128}, {512, 100}, {1000, 64}, {77, 513}}) {
    for (const auto& [in, out] : dtype_pairs()) {
      for (const bool accumulate : {false, true}) {
        for (const bool with_bias : {false, true}) {
          SCOPED_TRACE(describe({.m = 0,
                                 .n = size.n,
                                 .k = size.k,
                                 .transpose_b = true,
                                 .bias = with_bias,
                                 .accumulate = accumulate,
                                 .in = in,
                                 .out = out}));
          constexpr int64_t kRows = 300;
          const Tensor a = random_tensor({kRows, size.k}, 1, in);
          const Tensor b = random_tensor({size.n, size.k}, 2, in);
          const Tensor bias = random_tensor({size.n}, 3);
          const auto product = [&](int64_t first, int64_t last) {
            const Tensor c = Tensor::zeros({last - first, size.n}, out);
            gemm(a.slice_rows(first, last), Transpose::kNo, b, Transpose::kYes, c,
                 {.bias = with_bias ? &bias : nullptr, .accumulate = accumulate});
            return c;
          };
          const Tensor all = product(0, kRows);
          std::string unlike;
          for (const int64_t rows : {1, 2, 3, 7, 16, 63, 64, 65, 129, 186}) {
            for (const int64_t first : {int64_t{0}, int64_t{11}, kRows - rows}) {
              const bool same = bits_of(product(first, first + rows)) ==
                                bits_of(all.slice_rows(first, first + rows));
              if (!same) unlike += fmt::format("{} rows from {}; ", rows, first);
            }
          }
          EXPECT_EQ(unlike, "");
        }
      }
    }
  }
}

TEST(Gemm, CarriesNotANumberAndInfinity) {
  const Tensor a = Tensor::from({1, NAN, 2, INFINITY, 1, 1}, {3, 2});
  const Tensor c({3, 1}, DType::kFloat32);
  gemm(a, Transpose::kNo, Tensor::from({1, 1}, {2, 1}), Transpose::kNo, c);
  const std::vector<float> out = c.to_vector();
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_EQ(out[1], INFINITY);
  EXPECT_EQ(out[2], 2.0F);
}

TEST(Gemm, RefusesWhatDoesNotFit) {
  const Tensor a({2, 3}, DType::kFloat32), b({4, 5}, DType::kFloat32), c({2, 5}, DType::kFloat32);
  EXPECT_THROW(gemm(a, Transpose::kNo, b, Transpose::kNo, c), Error);
  const Tensor fitting({3, 5}, DType::kFloat32), half({3, 5}, DType::kBFloat16);
  EXPECT_NO_THROW(gemm(a, Transpose::kNo, fitting, Transpose::kNo, c));
  EXPECT_THROW(gemm(a, Transpose::kNo, half, Transpose::kNo, c), Error);
  EXPECT_THROW(gemm(a, Transpose::kYes, fitting, Transpose::kNo, c), Error);
  EXPECT_THROW(gemm(a, Transpose::kNo, fitting, Transpose::kNo, Tensor({5, 2}, DType::kFloat32)),
               Error);
  EXPECT_THROW(gemm(a, Transpose::kNo, fitting, Transpose::kNo, Tensor({2, 5}, DType::kBFloat16)),
               Error);
}

TEST(Gemm, SaysWhatItIsMadeOf) {
  EXPECT_TRUE(name_gemm_library().starts_with("oneDNN "));
  EXPECT_GT(measure_gemm_rate(DType::kFloat32, 0.01), 1e8);
}

}  // namespace
}  // namespace attend::testing
