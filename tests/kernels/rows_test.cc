#include "attend/kernels/rows.h"

#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "tests/support/numbers.h"

namespace attend::testing {
namespace {

TEST(ScatterRows, PutsEachRowInItsPlaceInAnyDtype) {
  for (const DType from_dtype : {DType::kFloat32, DType::kBFloat16}) {
    for (const DType to_dtype : {DType::kFloat32, DType::kBFloat16}) {
      for (const int64_t columns : {1, 7, 16, 37}) {
        const Tensor wide({3, columns + 5}, from_dtype), all({6, columns + 3}, to_dtype);
        wide.assign(random_values(wide.count(), 1));
        all.assign(std::vector<float>(static_cast<std::size_t>(all.count()), 9.0F));
        const Tensor from = wide.slice_columns(2, 2 + columns),
                     to = all.slice_columns(3, 3 + columns);
        const std::vector<int32_t> places = {4, 0, 5};
        scatter_rows(from, places, to);
        for (std::size_t row = 0; row < 3; ++row) {
          const auto at = static_cast<int64_t>(row);
          std::vector<float> expected = from.slice_rows(at, at + 1).to_vector();
          if (to_dtype == DType::kBFloat16) {
            for (float& value : expected) value = to_float(to_bfloat16(value));
          }
          EXPECT_EQ(to.slice_rows(places[row], places[row] + 1).to_vector(), expected);
        }
        for (const int64_t row : {1, 2, 3}) {
          for (const float value : all.slice_rows(row, row + 1).to_vector()) EXPECT_EQ(value, 9);
        }
        for (const float value : all.slice_columns(0, 3).to_vector()) EXPECT_EQ(value, 9);
      }
    }
  }
}

TEST(ScatterRows, RefusesWhatDoesNotFit) {
  const Tensor from = Tensor::zeros({2, 3}, DType::kFloat32),
               to = Tensor::zeros({4, 3}, DType::kFloat32);
  EXPECT_THROW(scatter_rows(from, std::vector<int32_t>{0}, to), Error);
  EXPECT_THROW(scatter_rows(from, std::vector<int32_t>{0, 4}, to), Error);
  EXPECT_THROW(scatter_rows(from, std::vector<int32_t>{-1, 2}, to), Error);
  EXPECT_THROW(scatter_rows(from, std::vector<int32_t>{0, 1}, to.slice_columns(0, 2)), Error);
}

}  // namespace
}  // namespace attend::testing
