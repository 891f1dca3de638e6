#include "attend/kernels/cached_attention.h"

#include <algorithm>
#include <limits>

// The order matters.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/cached_attention.cc"
#include "attend/kernels/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include "attend/kernels/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {
namespace {

struct DotTerm {
  template <class V>
  HWY_INLINE V operator()(V query, V key, V, V sum) const {
    return hn::MulAdd(query, key, sum);
  }
};

struct AdditiveTerm {
  template <class V>
  HWY_INLINE V operator()(V query, V key, V w, V sum) const {
    return hn::MulAdd(w, Tanh(hn::DFromV<V>(), hn::Add(query, key)), sum);
  }
};

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

/// The sums over the lanes of four vectors, in four lanes.
HWY_INLINE hn::Vec<QuadTag> SumFour(const FloatVector (&sums)[4]) {
  const FloatTag d;
  const hn::RepartitionToWide<FloatTag> wide;
  const auto fold = [&](FloatVector a, FloatVector b) HWY_ATTR {
    return hn::BitCast(wide, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  };
  const auto low = fold(sums[0], sums[1]), high = fold(sums[2], sums[3]);
  return FoldQuads(d, hn::Add(hn::BitCast(d, hn::InterleaveLower(wide, low, high)),
                              hn::BitCast(d, hn::InterleaveUpper(wide, low, high))));
}

/// One row's work. Rows of queries and w are padded to whole vectors, those of scores too.
struct RowScratch {
  int64_t key_stride, score_stride;
  float* queries;  ///< [heads, key_stride]
  float* w;        ///< [heads, key_stride], of the additive score
  float* scores;   ///< [heads, score_stride]
};

/// scores [heads, slots], four slots at once.
template <class Term, typename T>
void ScoreSlots(const CachedAttentionShape& shape, const int32_t* slots, int64_t count,
                const Tensor& keys, const RowScratch& scratch) {
  const FloatTag d;
  const Term term;
  const int64_t width = shape.key_width;
  for (int64_t first = 0; first < count; first += 4) {
    const T* rows[4];
    for (int64_t i = 0; i < 4; ++i) {
      rows[i] = keys.data<T>() + slots[std::min(first + i, count - 1)] * keys.row_stride();
    }
    for (int64_t head = 0; head < shape.heads; ++head) {
      const float* query = scratch.queries + head * scratch.key_stride;
      const float* w = scratch.w + head * scratch.key_stride;
      FloatVector sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
      for (int64_t column = 0; column < width; column += FloatLanes()) {
        const auto query_part = hn::LoadU(d, query + column);
        const auto w_part = hn::LoadU(d, w + column);
        for (int64_t i = 0; i < 4; ++i) {
          const auto key = LoadSome(d, rows[i] + head * width + column, width - column);
          sums[i] = term(query_part, key, w_part, sums[i]);
        }
      }
      hn::StoreU(SumFour(sums), QuadTag(), scratch.scores + head * scratch.score_stride + first);
    }
  }
}

/// scores [count] become exp(score - greatest), padded with zeros; returns the inverse of the sum.
HWY_INLINE float SoftmaxRow(float* scores, int64_t count) {
  const FloatTag d;
  for (int64_t i = count; i < RoundUp(count, FloatLanes()); ++i) {
    scores[i] = -std::numeric_limits<float>::infinity();
  }
  auto most = hn::LoadU(d, scores);
  for (int64_t i = FloatLanes(); i < count; i += FloatLanes()) {
    most = hn::Max(most, hn::LoadU(d, scores + i));
  }
  const auto greatest = hn::MaxOfLanes(d, most);
  auto sum = hn::Zero(d);
  for (int64_t i = 0; i < count; i += FloatLanes()) {
    const auto weight = ExpNonPositive(d, hn::Sub(hn::LoadU(d, scores + i), greatest));
    hn::StoreU(weight, d, scores + i);
    sum = hn::Add(sum, weight);
  }
  return 1.0F / SumLanes(d, sum);
}

/// out [kVectors vectors] = scale * sum of weights times the slots' rows.
template <int kVectors, typename T, typename TOut>
HWY_INLINE void WeighSlots(const T* rows, int64_t row_stride, const int32_t* slots, int64_t count,
                           const float* weights, float scale, int64_t width, TOut* out) {
  const FloatTag d;
  FloatVector sums[2][kVectors];  // of even and of odd slots: two chains
  for (int v = 0; v < kVectors; ++v) sums[0][v] = sums[1][v] = hn::Zero(d);
  const auto add = [&](int64_t i, FloatVector(&to)[kVectors]) HWY_ATTR {
    const T* row = rows + slots[i] * row_stride;
    const auto weight = hn::Set(d, weights[i]);
    for (int v = 0; v < kVectors; ++v) {
      const int64_t column = v * FloatLanes();
      to[v] = hn::MulAdd(weight, LoadSome(d, row + column, width - column), to[v]);
    }
  };
  int64_t i = 0;
  for (; i + 2 <= count; i += 2) {
    add(i, sums[0]);
    add(i + 1, sums[1]);
  }
  if (i < count) add(i, sums[0]);
  for (int v = 0; v < kVectors; ++v) {
    const int64_t column = v * FloatLanes();
    const auto sum = hn::Mul(hn::Add(sums[0][v], sums[1][v]), hn::Set(d, scale));
    StoreSome(sum, d, out + column, width - column);
  }
}

/// One head's row of out, in strips of four vectors, then single ones.
template <typename T, typename TOut>
void WeighHead(const T* rows, int64_t row_stride, const int32_t* slots, int64_t count,
               const float* weights, float scale, int64_t width, TOut* out) {
  int64_t column = 0;
  for (; column + 4 * FloatLanes() <= width; column += 4 * FloatLanes()) {
    WeighSlots<4>(rows + column, row_stride, slots, count, weights, scale, 4 * FloatLanes(),
                  out + column);
  }
  for (; column + 2 * FloatLanes() <= width; column += 2 * FloatLanes()) {
    WeighSlots<2>(rows + column, row_stride, slots, count, weights, scale, 2 * FloatLanes(),
                  out + column);
  }
  for (; column < width; column += FloatLanes()) {
    WeighSlots<1>(rows + column, row_stride, slots, count, weights, scale, width - column,
                  out + column);
  }
}

RowScratch MakeRowScratch(const CachedAttentionShape& shape) {
  int64_t most = 1;
  for (std::size_t r = 0; r + 1 < shape.offsets.size(); ++r) {
    most = std::max(most, shape.offsets[r + 1] - shape.offsets[r]);
  }
  RowScratch scratch{};
  scratch.key_stride = RoundUp(shape.key_width, FloatLanes());
  scratch.score_stride = RoundUp(most, 16);
  const int64_t vectors = RoundUp(shape.heads * scratch.key_stride, 16);
  scratch.queries = attention_scratch(2 * vectors + shape.heads * scratch.score_stride);
  scratch.w = scratch.queries + vectors;
  scratch.scores = scratch.w + vectors;
  return scratch;
}

/// Rows of [heads, width] times scale, as floats padded to whole vectors.
template <typename T>
void PackHeads(const T* from, int64_t from_stride, int64_t heads, int64_t width, float scale,
               float* to, int64_t stride) {
  const FloatTag d;
  const auto factor = hn::Set(d, scale);
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t column = 0; column < width; column += FloatLanes()) {
      const auto part = LoadSome(d, from + head * from_stride + column, width - column);
      hn::StoreU(hn::Mul(part, factor), d, to + head * stride + column);
    }
  }
}

template <class Term, typename T, typename TCache>
void AttendRows(const CachedAttentionShape& shape, const Tensor& q, const Tensor& keys,
                const Tensor& values, const Tensor* score_vector, const Tensor& out) {
  const RowScratch scratch = MakeRowScratch(shape);
  if (score_vector != nullptr) {
    PackHeads(score_vector->data<float>(), score_vector->row_stride(), shape.heads, shape.key_width,
              shape.scale, scratch.w, scratch.key_stride);
  }
  const float query_scale = score_vector == nullptr ? shape.scale : 1.0F;
  for (int64_t row = 0; row < q.rows(); ++row) {
    const int64_t first = shape.offsets[static_cast<std::size_t>(row)];
    const int64_t count = shape.offsets[static_cast<std::size_t>(row) + 1] - first;
    const int32_t* slots = shape.slots.data() + first;
    PackHeads(q.data<T>() + row * q.row_stride(), shape.key_width, shape.heads, shape.key_width,
              query_scale, scratch.queries, scratch.key_stride);
    ScoreSlots<Term, TCache>(shape, slots, count, keys, scratch);
    for (int64_t head = 0; head < shape.heads; ++head) {
      float* weights = scratch.scores + head * scratch.score_stride;
      const float scale = SoftmaxRow(weights, count);
      WeighHead(values.data<TCache>() + head * shape.value_width, values.row_stride(), slots, count,
                weights, scale, shape.value_width,
                out.data<T>() + row * out.row_stride() + head * shape.value_width);
    }
  }
}

template <class Term>
void AttendAs(const CachedAttentionShape& shape, const Tensor& q, const Tensor& keys,
              const Tensor& values, const Tensor* score_vector, const Tensor& out) {
  const bool floats = q.dtype() == DType::kFloat32, float_cache = keys.dtype() == DType::kFloat32;
  if (floats && float_cache) {
    AttendRows<Term, float, float>(shape, q, keys, values, score_vector, out);
  } else if (floats) {
    AttendRows<Term, float, BFloat16>(shape, q, keys, values, score_vector, out);
  } else if (float_cache) {
    AttendRows<Term, BFloat16, float>(shape, q, keys, values, score_vector, out);
  } else {
    AttendRows<Term, BFloat16, BFloat16>(shape, q, keys, values, score_vector, out);
  }
}

/// score_vector is null for the dot product.
void Attend(const CachedAttentionShape& shape, const Tensor& q, const Tensor& keys,
            const Tensor& values, const Tensor* score_vector, const Tensor& out) {
  if (score_vector == nullptr) {
    AttendAs<DotTerm>(shape, q, keys, values, nullptr, out);
  } else {
    AttendAs<AdditiveTerm>(shape, q, keys, values, score_vector, out);
  }
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

void check_cached(const char* what, const CachedAttentionShape& shape, const Tensor& q,
                  const Tensor& keys, const Tensor& values, const Tensor& out) {
  const auto offsets = shape.offsets;
  if (shape.heads < 1 || shape.key_width < 1 || shape.value_width < 1) {
    fail("{}: {} heads of widths {} and {}; all must be positive", what, shape.heads,
         shape.key_width, shape.value_width);
  }
  if (static_cast<int64_t>(offsets.size()) != q.rows() + 1 || offsets.front() != 0 ||
      offsets.back() != static_cast<int64_t>(shape.slots.size())) {
    fail("{}: {} offsets for {} rows and {} slots", what, offsets.size(), q.rows(),
         shape.slots.size());
  }
  for (std::size_t row = 0; row + 1 < offsets.size(); ++row) {
    if (offsets[row] >= offsets[row + 1]) fail("{}: row {} has no slots", what, row);
  }
  check_matrix(what, "q", q, q.rows(), shape.heads * shape.key_width, q.dtype());
  check_matrix(what, "key_cache", keys, keys.rows(), shape.heads * shape.key_width, keys.dtype());
  check_matrix(what, "value_cache", values, keys.rows(), shape.heads * shape.value_width,
               keys.dtype());
  check_matrix(what, "out", out, q.rows(), shape.heads * shape.value_width, q.dtype());
  int32_t least = 0, most = 0;
  for (const int32_t slot : shape.slots) {
    least = std::min(least, slot);
    most = std::max(most, slot);
  }
  if (!shape.slots.empty() && (least < 0 || most >= keys.rows())) {
    fail("{}: slot {} of a cache of {}", what, least < 0 ? least : most, keys.rows());
  }
}

}  // namespace

void cached_attention(const CachedAttentionShape& shape, const Tensor& q, const Tensor& key_cache,
                      const Tensor& value_cache, const Tensor& out) {
  check_cached("cached_attention", shape, q, key_cache, value_cache, out);
  HWY_DYNAMIC_DISPATCH(Attend)(shape, q, key_cache, value_cache, nullptr, out);
}

void cached_additive_attention(const CachedAttentionShape& shape, const Tensor& q,
                               const Tensor& key_cache, const Tensor& value_cache,
                               const Tensor& score_vector, const Tensor& out) {
  constexpr const char* kWhat = "cached_additive_attention";
  check_cached(kWhat, shape, q, key_cache, value_cache, out);
  check_matrix(kWhat, "score_vector", score_vector, shape.heads, shape.key_width, DType::kFloat32);
  HWY_DYNAMIC_DISPATCH(Attend)(shape, q, key_cache, value_cache, &score_vector, out);
}

}  // namespace attend
#endif  // HWY_ONCE
