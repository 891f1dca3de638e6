#include <algorithm>
#include <type_traits>

// The order matters.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/memory_attention.cc"
#include "attend/kernels/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include "attend/kernels/cached_attention-inl.h"
#include "attend/kernels/cached_attention.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {
namespace {

/// Rows that share what is loaded of the cache. They need four registers a row for their scores'
/// sums: with 16 registers, two rows fit.
constexpr int kShare = kLanes == 16 ? 4 : 2;

using QuadTag = hn::CappedTag<float, 4>;

/// Sums a vector's lanes that are four apart.
template <class D>
HWY_INLINE hn::Vec<QuadTag> FoldQuads(D /*d*/, hn::Vec<D> value) {
  if constexpr (hn::MaxLanes(D()) > 4) {
    const hn::Half<D> half;
    return FoldQuads(half, hn::Add(hn::LowerHalf(half, value), hn::UpperHalf(half, value)));
  } else {
    return value;
  }
}

/// The weights' mean over heads. mean: [rows, count].
void AverageWeights(const CachedCall& call, const RowScratch& scratch, int64_t rows, int64_t count,
                    float* mean) {
  const FloatTag d;
  const auto heads = hn::Set(d, 1.0F / static_cast<float>(call.heads));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t slot = 0; slot < count; slot += 4) {
      auto sum = hn::Zero(d);
      for (int64_t head = 0; head < call.heads; head += kTogether) {
        const float* factor = scratch.factor(row, head);
        const auto mask = hn::FirstN(d, static_cast<std::size_t>(4 * (call.heads - head)));
        const auto scale = hn::IfThenElseZero(mask, hn::Mul(hn::Load(d, factor), heads));
        sum = hn::MulAdd(scale, hn::Load(d, factor + (1 + slot / 4) * kLanes), sum);
      }
      StoreSome(FoldQuads(d, sum), QuadTag(), mean + slot, count - slot);
    }
    mean += count;
  }
}

/// kRows rows of queries from `row` on, all over the same `count` rows of the cache.
template <class Term, typename T, int kWidth, int kRows>
void AttendTogether(const CachedCall& call, const RowScratch& scratch, int64_t row, int64_t first,
                    int64_t count, float* mean) {
  const auto rows_of = [&](const Tensor& cache) {
    return NeighbourRows<T>{cache.data<T>() + first * cache.row_stride(), cache.row_stride()};
  };
  for (int64_t i = 0; i < kRows; ++i) PackQuery<T>(call, row + i, scratch, i);
  const int64_t next = row + kRows, end = std::min(next + kShare, call.q.rows());
  for (int64_t i = next; i < end; ++i) PrefetchRow(call.q, i);
  ScoreRows<Term, kWidth, kRows>(call, rows_of(call.keys), count, scratch, 0);
  for (int64_t i = 0; i < kRows; ++i) SoftmaxRow(call, scratch, i, count);
  WeighRows<kWidth, kRows>(call, rows_of(call.values), count, scratch, 0, row);
  if (mean != nullptr) AverageWeights(call, scratch, kRows, count, mean);
}

template <class Term, typename T, int kWidth>
void AttendRows(const CachedCall& call, const int64_t* first, const int64_t* count, float* mean) {
  if (call.q.rows() == 0) return;
  const RowScratch scratch(call, kShare, *std::max_element(count, count + call.q.rows()));
  PackScoreVector<T>(call, scratch);
  const auto attend = [&](auto rows, int64_t row) {
    AttendTogether<Term, T, kWidth, static_cast<int>(rows)>(call, scratch, row, first[row],
                                                            count[row], mean);
  };
  for (int64_t row = 0; row < call.q.rows();) {
    int64_t rows = 1;
    while (rows < kShare && row + rows < call.q.rows() && first[row + rows] == first[row] &&
           count[row + rows] == count[row]) {
      ++rows;
    }
    // NOLINTBEGIN(bugprone-branch-clone): where kShare is 2 some are alike
    switch (rows) {
      case 1:
        attend(std::integral_constant<int, 1>(), row);
        break;
      case 2:
        attend(std::integral_constant<int, 2>(), row);
        break;
      case 3:
        attend(std::integral_constant<int, std::min(kShare, 3)>(), row);
        break;
      default:
        attend(std::integral_constant<int, kShare>(), row);
    }
    // NOLINTEND(bugprone-branch-clone)
    if (mean != nullptr) mean += rows * count[row];
    row += rows;
  }
}

template <typename T>
void AttendAs(const CachedCall& call, const int64_t* first, const int64_t* count, float* mean) {
  if (call.score_vector != nullptr) return AttendRows<AdditiveTerm, T, 0>(call, first, count, mean);
  const int64_t width = UniformWidth(call);
  const auto attend = width == 32   ? AttendRows<DotTerm, T, 32>
                      : width == 64 ? AttendRows<DotTerm, T, 64>
                                    : AttendRows<DotTerm, T, 0>;
  attend(call, first, count, mean);
}

void AttendMemory(const CachedCall& call, const int64_t* first, const int64_t* count, float* mean) {
  const bool floats = call.keys.dtype() == DType::kFloat32;
  (floats ? AttendAs<float> : AttendAs<BFloat16>)(call, first, count, mean);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "attend/base/error.h"

namespace attend {
namespace {

HWY_EXPORT(AttendMemory);

void check_memory(const char* what, const MemoryAttentionShape& shape, int64_t rows,
                  int64_t cache_rows, std::size_t mean_weights) {
  if (static_cast<int64_t>(shape.first.size()) != rows ||
      shape.count.size() != shape.first.size()) {
    fail("{}: {} first rows and {} counts for {} rows", what, shape.first.size(),
         shape.count.size(), rows);
  }
  std::size_t weights = 0;
  for (std::size_t row = 0; row < shape.first.size(); ++row) {
    const int64_t first = shape.first[row], count = shape.count[row];
    if (count < 1 || first < 0 || count > cache_rows - first) {
      fail("{}: row {} attends to {} rows from row {} of a cache of {}", what, row, count, first,
           cache_rows);
    }
    weights += static_cast<std::size_t>(count);
  }
  if (mean_weights != 0 && mean_weights != weights) {
    fail("{}: room for {} mean weights, expected {}", what, mean_weights, weights);
  }
}

void attend_checked(const char* what, const MemoryAttentionShape& shape, const CachedCall& call,
                    std::span<float> mean_weights) {
  check_cached_call(what, call);
  check_memory(what, shape, call.q.rows(), call.keys.rows(), mean_weights.size());
  HWY_DYNAMIC_DISPATCH(AttendMemory)
  (call, shape.first.data(), shape.count.data(),
   mean_weights.empty() ? nullptr : mean_weights.data());
}

}  // namespace

void memory_attention(const MemoryAttentionShape& shape, const Tensor& q, const Tensor& key_cache,
                      const Tensor& value_cache, const Tensor& out, std::span<float> mean_weights) {
  attend_checked("memory_attention", shape,
                 {shape.heads, shape.key_width, shape.value_width, shape.scale, q, key_cache,
                  value_cache, out, nullptr},
                 mean_weights);
}

void memory_additive_attention(const MemoryAttentionShape& shape, const Tensor& q,
                               const Tensor& key_cache, const Tensor& value_cache,
                               const Tensor& score_vector, const Tensor& out,
                               std::span<float> mean_weights) {
  attend_checked("memory_additive_attention", shape,
                 {shape.heads, shape.key_width, shape.value_width, shape.scale, q, key_cache,
                  value_cache, out, &score_vector},
                 mean_weights);
}

}  // namespace attend
#endif  // HWY_ONCE
