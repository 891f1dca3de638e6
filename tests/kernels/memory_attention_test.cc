#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

#include "attend/base/error.h"
#include "attend/kernels/cached_attention.h"
#include "tests/kernels/attention_reference.h"

namespace attend {
namespace {

/// Sentences of every length from 1 on, the first with one hypothesis, the next with two, …
struct Sentences {
  Sentences(int64_t heads, int64_t key_width, int64_t value_width, int64_t sentences, DType dtype,
            DType cache_dtype) {
    int64_t tokens = 0;
    for (int64_t s = 1; s <= sentences; ++s) {
      for (int64_t i = 0; i < 1 + (s - 1) % 8; ++i) {
        first.push_back(tokens);
        count.push_back(s);
        for (int64_t token = tokens; token < tokens + s; ++token) {
          slots.push_back(static_cast<int32_t>(token));
        }
        offsets.push_back(static_cast<int64_t>(slots.size()));
      }
      tokens += s;
    }
    const int64_t wide = heads * key_width, deep = heads * value_width;
    q = random_tensor(rows(), 2 * wide, dtype, 1).slice_columns(wide, 2 * wide);
    keys = random_tensor(tokens, wide, cache_dtype, 2);
    values = random_tensor(tokens, deep + 3, cache_dtype, 3).slice_columns(3, deep + 3);
    w = random_tensor(heads, key_width, DType::kFloat32, 4);
    out = Tensor({rows(), deep}, dtype);
    mean_weights.resize(slots.size());
    const float scale = 1.0F / std::sqrt(static_cast<float>(key_width));
    shape = {heads, key_width, value_width, first, count, scale};
    cached = {heads, key_width, value_width, offsets, slots, scale};
  }
  Sentences(const Sentences&) = delete;
  Sentences& operator=(const Sentences&) = delete;

  int64_t rows() const { return static_cast<int64_t>(first.size()); }

  std::vector<int64_t> first, count, offsets{0};
  std::vector<int32_t> slots;
  std::vector<float> mean_weights;
  MemoryAttentionShape shape;
  CachedAttentionShape cached;
  Tensor q, keys, values, w, out;
};

struct Widths {
  int64_t heads, key_width, value_width;
};
constexpr Widths kWidths[] = {{1, 1, 1},   {3, 3, 5},   {5, 17, 33},
                              {4, 32, 32}, {8, 64, 64}, {6, 40, 128}};

/// Calls body(sentences) for widths and dtypes of all kinds, on every instruction set.
template <class Body>
void for_all_kinds(const Body& body) {
  for (const auto [heads, key_width, value_width] : kWidths) {
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      for (const DType cache_dtype : {DType::kFloat32, DType::kBFloat16}) {
        Sentences sentences(heads, key_width, value_width, 18, dtype, cache_dtype);
        for_each_target([&] { body(sentences); });
      }
    }
  }
}

TEST(MemoryAttention, IsCachedAttentionToTheBit) {
  for_all_kinds([](const Sentences& s) {
    const Tensor expected(s.out.shape(), s.out.dtype());
    memory_attention(s.shape, s.q, s.keys, s.values, s.out);
    cached_attention(s.cached, s.q, s.keys, s.values, expected);
    EXPECT_EQ(s.out.to_vector(), expected.to_vector());
    memory_additive_attention(s.shape, s.q, s.keys, s.values, s.w, s.out);
    cached_additive_attention(s.cached, s.q, s.keys, s.values, s.w, expected);
    EXPECT_EQ(s.out.to_vector(), expected.to_vector());
  });
}

TEST(MemoryAttention, ARowAloneIsARowAmongItsSiblings) {
  for_all_kinds([](Sentences& s) {
    memory_attention(s.shape, s.q, s.keys, s.values, s.out, s.mean_weights);
    for (int64_t row = 0; row < s.rows(); ++row) {
      const auto at = static_cast<std::size_t>(row);
      MemoryAttentionShape alone = s.shape;
      alone.first = alone.first.subspan(at, 1);
      alone.count = alone.count.subspan(at, 1);
      const Tensor out({1, s.out.columns()}, s.out.dtype());
      std::vector<float> weights(static_cast<std::size_t>(s.count[at]));
      memory_attention(alone, s.q.slice_rows(row, row + 1), s.keys, s.values, out, weights);
      EXPECT_EQ(out.to_vector(), s.out.slice_rows(row, row + 1).to_vector());
      const float* among = &s.mean_weights[static_cast<std::size_t>(s.offsets[at])];
      EXPECT_EQ(weights, std::vector<float>(among, among + s.count[at]));
    }
  });
}

// With values that are 1 in the token's own column, every head returns its weights as they are.
void expect_mean_of_heads(int64_t heads, int64_t key_width, int64_t value_width) {
  constexpr int64_t kTokens = 11, kRows = 6, kCacheRows = 20, kFirst = 2;
  const std::vector<int64_t> first(kRows, kFirst), count(kRows, kTokens);
  const MemoryAttentionShape shape{heads, key_width, value_width, first, count, 0.5F};
  const Tensor q = random_tensor(kRows, heads * key_width, DType::kFloat32, 1);
  const Tensor keys = random_tensor(kCacheRows, heads * key_width, DType::kBFloat16, 2);
  std::vector<float> ones(static_cast<std::size_t>(kCacheRows * heads * value_width));
  for (int64_t token = 0; token < kTokens; ++token) {
    for (int64_t head = 0; head < heads; ++head) {
      const int64_t row = kFirst + token, column = head * value_width + token;
      ones[static_cast<std::size_t>(row * heads * value_width + column)] = 1;
    }
  }
  const Tensor values({kCacheRows, heads * value_width}, DType::kBFloat16);
  values.assign(ones);
  const Tensor w = random_tensor(heads, key_width, DType::kFloat32, 4);
  const Tensor out({kRows, heads * value_width}, DType::kFloat32);
  std::vector<float> weights(kRows * kTokens);
  const auto compare = [&] {
    const std::vector<float> of_heads = out.to_vector();
    for (int64_t i = 0; i < kRows * kTokens; ++i) {
      double sum = 0;
      for (int64_t head = 0; head < heads; ++head) {
        const int64_t at = (i / kTokens * heads + head) * value_width + i % kTokens;
        sum += of_heads[static_cast<std::size_t>(at)];
      }
      EXPECT_NEAR(weights[static_cast<std::size_t>(i)], sum / static_cast<double>(heads), 2e-6);
    }
    EXPECT_NEAR(std::accumulate(weights.begin(), weights.end(), 0.0), kRows, 1e-5);
  };
  for_each_target([&] {
    memory_attention(shape, q, keys, values, out, weights);
    compare();
    memory_additive_attention(shape, q, keys, values, w, out, weights);
    compare();
  });
}

TEST(MemoryAttention, MeanWeightsAreTheMeanOfTheHeads) {
  for (const int64_t heads : {1, 3, 4, 8}) {
    expect_mean_of_heads(heads, 5, 11);
    expect_mean_of_heads(heads, 32, 32);
    expect_mean_of_heads(heads, 64, 64);
  }
}

TEST(MemoryAttention, RefusesShapesThatDoNotFit) {
  Sentences s(2, 4, 4, 5, DType::kFloat32, DType::kFloat32);
  const auto attend = [&] {
    memory_attention(s.shape, s.q, s.keys, s.values, s.out, s.mean_weights);
  };
  EXPECT_NO_THROW(attend());
  for (const auto& [first, count] : std::vector<std::pair<int64_t, int64_t>>{
           {-1, 1}, {0, 0}, {15, 1}, {14, 2}, {1, INT64_MAX}}) {
    const int64_t old_first = std::exchange(s.first[3], first);
    const int64_t old_count = std::exchange(s.count[3], count);
    EXPECT_THROW(attend(), Error);
    s.first[3] = old_first;
    s.count[3] = old_count;
  }
  s.mean_weights.pop_back();
  EXPECT_THROW(attend(), Error);
  s.mean_weights.clear();
  EXPECT_NO_THROW(attend());
  s.shape.value_width = 5;
  EXPECT_THROW(attend(), Error);
  s.shape.value_width = 4;
  s.shape.first = s.shape.first.subspan(1);
  EXPECT_THROW(attend(), Error);
}

TEST(MemoryAttention, NoRowsAreNothing) {
  const Sentences s(2, 4, 4, 0, DType::kFloat32, DType::kFloat32);
  EXPECT_NO_THROW(memory_attention(s.shape, s.q, s.keys, s.values, s.out));
}

}  // namespace
}  // namespace attend
