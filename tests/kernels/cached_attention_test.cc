#include "attend/kernels/cached_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "attend/base/error.h"
#include "attend/kernels/additive_attention.h"
#include "tests/kernels/attention_reference.h"

namespace attend {
namespace {

std::vector<double> to_doubles(const Tensor& tensor) {
  const std::vector<float> values = tensor.to_vector();
  return {values.begin(), values.end()};
}

/// The given rows of a tensor, one after the other.
Tensor gather_rows(const Tensor& from, const std::vector<int32_t>& rows) {
  std::vector<float> values;
  for (const int32_t row : rows) {
    const std::vector<float> part = from.slice_rows(row, row + 1).to_vector();
    values.insert(values.end(), part.begin(), part.end());
  }
  Tensor made({static_cast<int64_t>(rows.size()), from.columns()}, from.dtype());
  made.assign(values);
  return made;
}

/// Row r attends to r + 1 slots that lie anywhere.
struct Rows {
  Rows(int64_t heads, int64_t key_width, int64_t value_width, int64_t rows, DType dtype,
       DType cache_dtype) {
    constexpr int64_t kSlots = 200;
    const int64_t wide = heads * key_width, deep = heads * value_width;
    q = random_tensor(rows, 2 * wide, dtype, 1).slice_columns(wide, 2 * wide);
    keys = random_tensor(kSlots, wide, cache_dtype, 2);
    values = random_tensor(kSlots, deep + 3, cache_dtype, 3).slice_columns(3, deep + 3);
    w = random_tensor(heads, key_width, DType::kFloat32, 4);
    out = Tensor({rows, deep}, dtype);
    RandomGenerator random(5);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i <= row; ++i) {
        slots.push_back(static_cast<int32_t>(random.uniform_index(kSlots)));
      }
      offsets.push_back(static_cast<int64_t>(slots.size()));
    }
    shape = {heads,   key_width, value_width,
             offsets, slots,     1.0F / std::sqrt(static_cast<float>(key_width))};
  }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  std::vector<int64_t> offsets{0};
  std::vector<int32_t> slots;
  CachedAttentionShape shape;
  Tensor q, keys, values, w, out;
};

/// What the training kernel makes of the same rows, as sequences of one query.
Tensor attend_without_cache(const Rows& rows, bool additive) {
  std::vector<int64_t> queries(rows.offsets.size());
  std::iota(queries.begin(), queries.end(), 0);
  const AttentionShape shape{rows.shape.heads,       rows.shape.key_width,
                             rows.shape.value_width, queries,
                             rows.offsets,           false,
                             rows.shape.scale,       {}};
  const Tensor k = gather_rows(rows.keys, rows.slots), v = gather_rows(rows.values, rows.slots);
  const auto as_floats = [](const Tensor& tensor) {
    return Tensor::from(tensor.to_vector(), tensor.shape());
  };
  const Tensor out(rows.out.shape(), DType::kFloat32);
  if (additive) {
    additive_attention_forward(shape, as_floats(rows.q), as_floats(k), as_floats(v), rows.w, out);
  } else {
    attention_forward(shape, as_floats(rows.q), as_floats(k), as_floats(v), out);
  }
  return out;
}

struct Widths {
  int64_t heads, key_width, value_width;
};
constexpr Widths kWidths[] = {{3, 1, 1},   {3, 3, 5},   {5, 17, 33}, {3, 32, 32}, {4, 32, 32},
                              {8, 64, 64}, {6, 64, 64}, {4, 64, 32}, {2, 40, 128}};

TEST(CachedAttention, EqualsAttentionWithoutACache) {
  for (const auto [heads, key_width, value_width] : kWidths) {
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      for (const DType cache_dtype : {DType::kFloat32, DType::kBFloat16}) {
        const Rows rows(heads, key_width, value_width, 40, dtype, cache_dtype);
        const double bound = dtype == DType::kFloat32 ? 2e-6 : 3e-3;
        for_each_target([&] {
          cached_attention(rows.shape, rows.q, rows.keys, rows.values, rows.out);
          EXPECT_LT(
              relative_error(rows.out.to_vector(), to_doubles(attend_without_cache(rows, false))),
              bound);
          cached_additive_attention(rows.shape, rows.q, rows.keys, rows.values, rows.w, rows.out);
          EXPECT_LT(
              relative_error(rows.out.to_vector(), to_doubles(attend_without_cache(rows, true))),
              bound);
        });
      }
    }
  }
}

// Query 1, keys ln 3 and 0 in slots 2 and 0, values 2 and 6: weights 3/4 and 1/4, so 3.
TEST(CachedAttention, WorkedExample) {
  const std::vector<int64_t> offsets{0, 2};
  const std::vector<int32_t> slots{2, 0};
  const CachedAttentionShape shape{1, 1, 1, offsets, slots, 1.0F};
  const Tensor keys = Tensor::from({0, 50, std::log(3.0F)}, {3, 1});
  const Tensor values = Tensor::from({6, 50, 2}, {3, 1}), out({1, 1}, DType::kFloat32);
  cached_attention(shape, Tensor::from({1}, {1, 1}), keys, values, out);
  EXPECT_NEAR(out.to_vector()[0], 3.0F, 1e-6F);
}

TEST(CachedAttention, RowsDoNotTouchOneAnother) {
  for (const auto [heads, key_width, value_width] : kWidths) {
    const Rows rows(heads, key_width, value_width, 33, DType::kFloat32, DType::kBFloat16);
    for_each_target([&] {
      cached_attention(rows.shape, rows.q, rows.keys, rows.values, rows.out);
      for (int64_t row = 0; row < 33; ++row) {
        const auto at = static_cast<std::size_t>(row);
        const int64_t begin = rows.offsets[at], count = rows.offsets[at + 1] - begin;
        const std::vector<int64_t> alone{0, count};
        CachedAttentionShape shape = rows.shape;
        shape.offsets = alone;
        shape.slots =
            shape.slots.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count));
        const Tensor out({1, rows.out.columns()}, DType::kFloat32);
        cached_attention(shape, rows.q.slice_rows(row, row + 1), rows.keys, rows.values, out);
        EXPECT_EQ(out.to_vector(), rows.out.slice_rows(row, row + 1).to_vector());
      }
    });
  }
}

TEST(CachedAttention, HugeScoresStayFinite) {
  const std::vector<int64_t> offsets{0, 3};
  const std::vector<int32_t> slots{0, 1, 2};
  const CachedAttentionShape shape{1, 1, 1, offsets, slots, 1.0F};
  const Tensor keys = Tensor::from({-1e18F, 1e18F, 0}, {3, 1});
  const Tensor values = Tensor::from({6, 5, 2}, {3, 1}), out({1, 1}, DType::kFloat32);
  cached_attention(shape, Tensor::from({1e18F}, {1, 1}), keys, values, out);
  EXPECT_EQ(out.to_vector()[0], 5.0F);
}

TEST(CachedAttention, RefusesShapesThatDoNotFit) {
  Rows rows(2, 4, 4, 3, DType::kFloat32, DType::kFloat32);
  const auto attend = [&] {
    cached_attention(rows.shape, rows.q, rows.keys, rows.values, rows.out);
  };
  rows.slots[4] = 200;
  EXPECT_THROW(attend(), Error);
  rows.slots[4] = -1;
  EXPECT_THROW(attend(), Error);
  rows.slots[4] = 199;
  EXPECT_NO_THROW(attend());
  rows.offsets[1] = 0;
  EXPECT_THROW(attend(), Error);
  rows.offsets[1] = 1;
  rows.shape.value_width = 5;
  EXPECT_THROW(attend(), Error);
}

TEST(CachedAttention, NoRowsAreNothing) {
  const Rows rows(2, 4, 4, 0, DType::kFloat32, DType::kFloat32);
  EXPECT_NO_THROW(cached_attention(rows.shape, rows.q, rows.keys, rows.values, rows.out));
}

}  // namespace
}  // namespace attend
