#include "attend/kernels/cached_attention.h"

#include <algorithm>

// The order matters.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/cached_attention.cc"
#include "attend/kernels/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include "attend/kernels/cached_attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {
namespace {

/// Rows go through each stage together, so that one's softmax, which is all waiting, overlaps with
/// another's.
constexpr int64_t kRowsAtOnce = 4;

/// Calls for the slots of a row, if there is such a row, but for those with which the row before it
/// begins, too: hypotheses of one sentence have their first ancestors in common. One row ahead is
/// enough; more would drive out what is still to be read.
void PrefetchNewSlots(const Tensor& cache, int64_t row, int64_t rows, const int64_t* offsets,
                      const int32_t* slots) {
  if (row >= rows) return;
  const int32_t* const end = slots + offsets[row + 1];
  const int32_t* slot = slots + offsets[row];
  slot = std::mismatch(slot, end, slots + offsets[row - 1], slot).first;
  for (; slot < end; ++slot) PrefetchRow(cache, *slot);
}

template <class Term, typename T, int kWidth>
void AttendRows(const CachedCall& call, const int64_t* offsets, const int32_t* slots) {
  int64_t most = 1;
  for (int64_t row = 0; row < call.q.rows(); ++row) {
    most = std::max(most, offsets[row + 1] - offsets[row]);
  }
  const RowScratch scratch(call, kRowsAtOnce, most);
  PackScoreVector<T>(call, scratch);
  const auto rows_of = [&](const Tensor& cache, int64_t row) {
    return SlotRows<T>{cache.data<T>(), cache.row_stride(), slots + offsets[row]};
  };
  for (int64_t first = 0; first < call.q.rows(); first += kRowsAtOnce) {
    const int64_t rows = std::min(kRowsAtOnce, call.q.rows() - first);
    const auto count = [&](int64_t i) { return offsets[first + i + 1] - offsets[first + i]; };
    for (int64_t i = 0; i < rows; ++i) PackQuery<T>(call, first + i, scratch, i);
    const auto call_for_next = [&](const Tensor& cache, int64_t i) {
      PrefetchNewSlots(cache, first + i + 1, call.q.rows(), offsets, slots);
    };
    for (int64_t i = 0; i < rows; ++i) {
      call_for_next(call.keys, i);
      ScoreRows<Term, kWidth, 1>(call, rows_of(call.keys, first + i), count(i), scratch, i);
    }
    for (int64_t i = 0; i < rows; ++i) SoftmaxRow(call, scratch, i, count(i));
    for (int64_t i = 0; i < rows; ++i) {
      call_for_next(call.values, i);
      WeighRows<kWidth, 1>(call, rows_of(call.values, first + i), count(i), scratch, i, first + i);
    }
  }
}

template <typename T>
void AttendAs(const CachedCall& call, const int64_t* offsets, const int32_t* slots) {
  if (call.score_vector != nullptr) return AttendRows<AdditiveTerm, T, 0>(call, offsets, slots);
  const int64_t width = UniformWidth(call);
  const auto attend = width == 32   ? AttendRows<DotTerm, T, 32>
                      : width == 64 ? AttendRows<DotTerm, T, 64>
                                    : AttendRows<DotTerm, T, 0>;
  attend(call, offsets, slots);
}

void Attend(const CachedCall& call, const int64_t* offsets, const int32_t* slots) {
  const bool floats = call.keys.dtype() == DType::kFloat32;
  (floats ? AttendAs<float> : AttendAs<BFloat16>)(call, offsets, slots);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "attend/base/error.h"

namespace attend {
namespace {

HWY_EXPORT(Attend);

void check_slots(const char* what, const CachedAttentionShape& shape, int64_t rows,
                 int64_t cache_rows) {
  const auto offsets = shape.offsets;
  if (static_cast<int64_t>(offsets.size()) != rows + 1 || offsets.front() != 0 ||
      offsets.back() != static_cast<int64_t>(shape.slots.size())) {
    fail("{}: {} offsets for {} rows and {} slots", what, offsets.size(), rows, shape.slots.size());
  }
  for (std::size_t row = 0; row + 1 < offsets.size(); ++row) {
    if (offsets[row] >= offsets[row + 1]) fail("{}: row {} has no slots", what, row);
  }
  uint32_t most = 0;  // a negative slot is greater than any other
  for (const int32_t slot : shape.slots) most = std::max(most, static_cast<uint32_t>(slot));
  if (!shape.slots.empty() && static_cast<int64_t>(most) >= cache_rows) {
    fail("{}: slot {} of a cache of {}", what, static_cast<int32_t>(most), cache_rows);
  }
}

void attend_checked(const char* what, const CachedAttentionShape& shape, const CachedCall& call) {
  check_cached_call(what, call);
  check_slots(what, shape, call.q.rows(), call.keys.rows());
  HWY_DYNAMIC_DISPATCH(Attend)(call, shape.offsets.data(), shape.slots.data());
}

}  // namespace

void check_cached_call(const char* what, const CachedCall& call) {
  const auto [heads, key_width, value_width, scale, q, keys, values, out, score_vector] = call;
  if (heads < 1 || key_width < 1 || value_width < 1) {
    fail("{}: {} heads of widths {} and {}; all must be positive", what, heads, key_width,
         value_width);
  }
  check_matrix(what, "q", q, q.rows(), heads * key_width, q.dtype());
  check_matrix(what, "key_cache", keys, keys.rows(), heads * key_width, keys.dtype());
  check_matrix(what, "value_cache", values, keys.rows(), heads * value_width, keys.dtype());
  check_matrix(what, "out", out, q.rows(), heads * value_width, q.dtype());
  if (score_vector == nullptr) return;
  check_matrix(what, "score_vector", *score_vector, heads, key_width, DType::kFloat32);
}

void cached_attention(const CachedAttentionShape& shape, const Tensor& q, const Tensor& key_cache,
                      const Tensor& value_cache, const Tensor& out) {
  attend_checked("cached_attention", shape,
                 {shape.heads, shape.key_width, shape.value_width, shape.scale, q, key_cache,
                  value_cache, out, nullptr});
}

void cached_additive_attention(const CachedAttentionShape& shape, const Tensor& q,
                               const Tensor& key_cache, const Tensor& value_cache,
                               const Tensor& score_vector, const Tensor& out) {
  attend_checked("cached_additive_attention", shape,
                 {shape.heads, shape.key_width, shape.value_width, shape.scale, q, key_cache,
                  value_cache, out, &score_vector});
}

}  // namespace attend
#endif  // HWY_ONCE
