#include "attend/tensor/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "attend/base/error.h"

namespace attend {
namespace {

TEST(BFloat16, RoundsToNearestEven) {
  EXPECT_EQ(to_bfloat16(1.0F).bits, 0x3F80);
  EXPECT_EQ(to_float(to_bfloat16(1.0F + 0x1p-8F)), 1.0F);                // a tie, to even
  EXPECT_EQ(to_float(to_bfloat16(1.0F + 3 * 0x1p-8F)), 1.0F + 0x1p-6F);  // a tie, to even
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_TRUE(std::isinf(to_float(to_bfloat16(std::numeric_limits<float>::max()))));
}

TEST(Tensor, ViewsShareTheNumbers) {
  const Tensor whole = Tensor::from({0, 1, 2, 3, 4, 5}, {2, 3});
  const Tensor right = whole.slice_columns(1, 3);
  EXPECT_EQ(right.to_vector(), (std::vector<float>{1, 2, 4, 5}));
  EXPECT_EQ(right.slice_rows(1, 2).to_vector(), (std::vector<float>{4, 5}));
  right.zero();
  EXPECT_EQ(whole.to_vector(), (std::vector<float>{0, 0, 0, 3, 0, 0}));
  EXPECT_THROW(right.reshape({4}), Error);
}

TEST(MemoryPool, GivesABlockAgainAndCountsIt) {
  MemoryPool pool;
  const std::byte* first = nullptr;
  {
    const Tensor tensor({100, 10}, DType::kFloat32, pool);
    first = tensor.raw();
    EXPECT_GE(pool.bytes_in_use(), 4000);
  }
  EXPECT_EQ(pool.bytes_in_use(), 0);
  const Tensor again({101, 10}, DType::kFloat32, pool);
  EXPECT_EQ(again.raw(), first);
}

TEST(MemoryPool, OutlivedByItsBlocks) {
  Tensor tensor;
  {
    MemoryPool pool;
    tensor = Tensor::zeros({4}, DType::kFloat32, pool);
  }
  EXPECT_EQ(tensor.to_vector(), (std::vector<float>(4, 0.0F)));
}

TEST(MemoryPool, RefusesImpossibleSizes) {
  EXPECT_THROW(MemoryPool::global().allocate(-1), Error);
  EXPECT_THROW(MemoryPool::global().allocate(int64_t{1} << 62), Error);
}

}  // namespace
}  // namespace attend
