// Attention of single queries over rows of a cache: what the kernels for lists of slots and for
// neighbouring rows share. Included once for each instruction set.
//
// Slots are taken four at a time and heads as many together as a vector has quads, so that one
// vector holds four scores of each: their sums over lanes are made together, and one softmax serves
// all the heads of a vector. Columns are taken two vectors at a time, a pair, since a word of the
// cache holds two bfloat16 numbers: the even columns and the odd ones, with no shuffle.
#if defined(ATTEND_KERNELS_CACHED_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_CACHED_ATTENTION_INL_H_
#undef ATTEND_KERNELS_CACHED_ATTENTION_INL_H_
#else
#define ATTEND_KERNELS_CACHED_ATTENTION_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

#include <hwy/cache_control.h>

#include "attend/kernels/attention_common.h"
#include "attend/kernels/attention_math-inl.h"
#include "attend/kernels/cached_attention_common.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

constexpr int64_t kLanes = hn::MaxLanes(FloatTag());
constexpr int64_t kPair = 2 * kLanes;      ///< columns
constexpr int64_t kTogether = kLanes / 4;  ///< heads that share a vector of scores

constexpr int64_t DivideUp(int64_t count, int64_t by) { return (count + by - 1) / by; }

/// kPair columns: of a bfloat16 cache the even and the odd ones, of a float32 cache the first half
/// and the second. Whatever meets such a pair is laid out in the same way.
struct Pair {
  FloatVector first, second;
};

HWY_INLINE Pair LoadWholePair(const float* from) {
  const FloatTag d;
  return {hn::LoadU(d, from), hn::LoadU(d, from + kLanes)};
}

HWY_INLINE Pair SplitWords(hn::Vec<hn::RebindToUnsigned<FloatTag>> words) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> d32;
#if HWY_COMPILER_GCC && HWY_TARGET == HWY_AVX3
  asm("" : "+v"(words.raw));  // else the compiler loads the words twice, once for each half
#endif
  return {hn::BitCast(d, hn::ShiftLeft<16>(words)),
          hn::BitCast(d, hn::And(words, hn::Set(d32, 0xFFFF0000U)))};
}

HWY_INLINE Pair LoadWholePair(const BFloat16* from) {
  const hn::RebindToUnsigned<FloatTag> d32;
  const hn::Repartition<uint16_t, FloatTag> d16;
  return SplitWords(hn::BitCast(d32, hn::LoadU(d16, reinterpret_cast<const uint16_t*>(from))));
}

/// The first `count` columns of a pair, the others 0.
template <typename T>
HWY_INLINE Pair LoadPartOfPair(const T* from, int64_t count) {
#if !HWY_MEM_OPS_MIGHT_FAULT
  const auto columns = static_cast<std::size_t>(count);
  if constexpr (std::is_same_v<T, BFloat16>) {
    const hn::RebindToUnsigned<FloatTag> d32;
    const hn::Repartition<uint16_t, FloatTag> d16;
    const auto* bits = reinterpret_cast<const uint16_t*>(from);
    return SplitWords(hn::BitCast(d32, hn::MaskedLoad(hn::FirstN(d16, columns), d16, bits)));
  } else {
    const FloatTag d;
    if (count <= kLanes) return {hn::MaskedLoad(hn::FirstN(d, columns), d, from), hn::Zero(d)};
    const auto mask = hn::FirstN(d, columns - static_cast<std::size_t>(kLanes));
    return {hn::LoadU(d, from), hn::MaskedLoad(mask, d, from + kLanes)};
  }
#else
  HWY_ALIGN T padded[kPair] = {};
  std::memcpy(padded, from, static_cast<std::size_t>(count) * sizeof(T));
  return LoadWholePair(padded);
#endif
}

template <bool kWhole, typename T>
HWY_INLINE Pair LoadPair(const T* from, int64_t count) {
  if constexpr (kWhole) return LoadWholePair(from);
  return LoadPartOfPair(from, count);
}

/// Queries, laid out as a cache of T is.
template <typename T, typename TQuery>
HWY_INLINE Pair LoadWholeQueryPair(const TQuery* from) {
  const FloatTag d;
  if constexpr (std::is_same_v<T, TQuery>) return LoadWholePair(from);
  const auto low = LoadF32(d, from), high = LoadF32(d, from + kLanes);
  if constexpr (std::is_same_v<T, float>) return {low, high};
  return {hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low)};
}

/// The first `count` columns, the others 0.
template <typename T, typename TQuery>
HWY_INLINE Pair LoadQueryPair(const TQuery* from, int64_t count) {
  if (count >= kPair) return LoadWholeQueryPair<T>(from);
  HWY_ALIGN TQuery padded[kPair] = {};
  std::memcpy(padded, from, static_cast<std::size_t>(count) * sizeof(TQuery));
  return LoadWholeQueryPair<T>(padded);
}

/// A pair that is laid out as those of a cache of T.
template <typename T, typename TOut>
HWY_INLINE void StoreWholePair(const Pair& pair, TOut* to) {
  const FloatTag d;
  if constexpr (std::is_same_v<T, float>) {
    StoreF32(pair.first, d, to);
    StoreF32(pair.second, d, to + kLanes);
  } else if constexpr (std::is_same_v<TOut, float>) {
    hn::StoreInterleaved2(pair.first, pair.second, d, to);
  } else {
    HWY_ALIGN float interleaved[kPair];
    hn::StoreInterleaved2(pair.first, pair.second, d, interleaved);
    StoreF32(hn::Load(d, interleaved), d, to);
    StoreF32(hn::Load(d, interleaved + kLanes), d, to + kLanes);
  }
}

/// Its first `count` columns.
template <typename T, bool kWhole, typename TOut>
HWY_INLINE void StorePair(const Pair& pair, TOut* to, int64_t count) {
  if constexpr (kWhole) return StoreWholePair<T>(pair, to);
  HWY_ALIGN TOut padded[kPair];
  StoreWholePair<T>(pair, padded);
  std::memcpy(to, padded, static_cast<std::size_t>(count) * sizeof(TOut));
}

/// The rows of a cache of T that a query attends to, in a list of slots.
template <typename T>
struct SlotRows {
  using Type = T;
  const T* data;
  int64_t stride;
  const int32_t* slots;
  HWY_INLINE const T* operator()(int64_t i) const { return data + slots[i] * stride; }
};

/// The same, one after the other.
template <typename T>
struct NeighbourRows {
  using Type = T;
  const T* data;  ///< of the first
  int64_t stride;
  HWY_INLINE const T* operator()(int64_t i) const { return data + i * stride; }
};

struct DotTerm {
  template <class V>
  HWY_INLINE V operator()(V query, V key, V /*w*/, V sum) const {
    return hn::MulAdd(query, key, sum);
  }
};

struct AdditiveTerm {
  template <class V>
  HWY_INLINE V operator()(V query, V key, V w, V sum) const {
    return hn::MulAdd(w, Tanh(hn::DFromV<V>(), hn::Add(query, key)), sum);
  }
};

/// Where a few rows' numbers are kept in between. Queries and w are whole pairs, laid out as the
/// cache's. Scores of slot s and head h, and later their weights, are at
/// h / kTogether * group_stride + s / 4 * kLanes + h % kTogether * 4 + s % 4.
struct RowScratch {
  int64_t head_stride;   ///< of queries and w, whole pairs
  int64_t query_stride;  ///< from one row to the next
  int64_t group_stride, score_stride;
  float *w, *queries, *scores;

  /// For `rows` rows that attend to `most` slots each at most.
  RowScratch(const CachedCall& call, int64_t rows, int64_t most)
      : head_stride(DivideUp(call.key_width, kPair) * kPair),
        query_stride(call.heads * head_stride),
        group_stride(DivideUp(most, 4) * kLanes),
        score_stride(DivideUp(call.heads, kTogether) * group_stride),
        w(attention_scratch((rows + 1) * query_stride + rows * score_stride)),
        queries(w + query_stride),
        scores(queries + rows * query_stride) {}

  float* weights(int64_t head) const {
    return scores + head / kTogether * group_stride + head % kTogether * 4;
  }
};

/// Rows of [heads, key_width] times scale, as pairs that suit a cache of T.
template <typename T, typename TQuery>
void PackHeads(const CachedCall& call, const TQuery* from, int64_t from_stride, float scale,
               int64_t stride, float* to) {
  const FloatTag d;
  const auto factor = hn::Set(d, scale);
  for (int64_t head = 0; head < call.heads; ++head) {
    for (int64_t column = 0; column < call.key_width; column += kPair) {
      const Pair pair =
          LoadQueryPair<T>(from + head * from_stride + column, call.key_width - column);
      float* at = to + head * stride + column;
      hn::Store(hn::Mul(pair.first, factor), d, at);
      hn::Store(hn::Mul(pair.second, factor), d, at + kLanes);
    }
  }
}

template <typename T>
void PackScoreVector(const CachedCall& call, const RowScratch& scratch) {
  if (call.score_vector == nullptr) return;
  PackHeads<T>(call, call.score_vector->data<float>(), call.score_vector->row_stride(), call.scale,
               scratch.head_stride, scratch.w);
}

constexpr int64_t kCacheLine = 64;  ///< bytes

/// Calls for `row`'s query, where there is such a row: it comes from a product over all rows, so
/// that it seldom lies in the nearest cache.
inline void PrefetchQuery(const CachedCall& call, int64_t row) {
  if (row >= call.q.rows()) return;
  const int64_t size = size_of(call.q.dtype()), bytes = call.q.columns() * size;
  const std::byte* query = call.q.raw() + row * call.q.row_stride() * size;
  for (int64_t at = 0; at < bytes; at += kCacheLine) hwy::Prefetch(query + at);
}

/// Packs `row`'s query as the scratch's number `at`.
template <typename T>
void PackQuery(const CachedCall& call, int64_t row, const RowScratch& scratch, int64_t at) {
  const float scale = call.score_vector == nullptr ? call.scale : 1.0F;
  const int64_t from = row * call.q.row_stride();
  float* to = scratch.queries + at * scratch.query_stride;
  if (call.q.dtype() == DType::kFloat32) {
    PackHeads<T>(call, call.q.data<float>() + from, call.key_width, scale, scratch.head_stride, to);
  } else {
    PackHeads<T>(call, call.q.data<BFloat16>() + from, call.key_width, scale, scratch.head_stride,
                 to);
  }
}

/// In each quad of lanes, the sums over one lane in four of the four vectors.
HWY_INLINE FloatVector FoldFour(const FloatVector (&sums)[4]) {
  const FloatTag d;
  const hn::RepartitionToWide<FloatTag> wide;
  const auto fold = [&](FloatVector a, FloatVector b) HWY_ATTR {
    return hn::BitCast(wide, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  };
  const auto low = fold(sums[0], sums[1]), high = fold(sums[2], sums[3]);
  return hn::Add(hn::BitCast(d, hn::InterleaveLower(wide, low, high)),
                 hn::BitCast(d, hn::InterleaveUpper(wide, low, high)));
}

/// Quad h is the sum of the quads of folded[h].
template <class D>
HWY_INLINE hn::Vec<D> SumQuads(D d, const hn::Vec<D> (&folded)[hn::MaxLanes(D()) / 4]) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return folded[0];
  } else {
    auto even = folded[0], odd = folded[1];
    if constexpr (hn::MaxLanes(D()) == 16) {
      const auto halve = [&](hn::Vec<D> a, hn::Vec<D> b) HWY_ATTR {
        return hn::Add(hn::ConcatLowerLower(d, b, a), hn::ConcatUpperUpper(d, b, a));
      };
      even = halve(folded[0], folded[2]);
      odd = halve(folded[1], folded[3]);
    }
    return hn::Add(hn::OddEvenBlocks(odd, even),
                   hn::SwapAdjacentBlocks(hn::OddEvenBlocks(even, odd)));
  }
}

/// Adds the terms of a pair of columns to the sums of kRows queries and four keys.
template <class Term, bool kWhole, int kRows, typename T>
HWY_INLINE void AddTerms(const T* const (&keys)[4], int64_t column, int64_t count,
                         const float* queries, int64_t query_stride, const float* w,
                         FloatVector (&sums)[kRows][4]) {
  const FloatTag d;
  const Term term;
  const auto w_first = hn::Load(d, w), w_second = hn::Load(d, w + kLanes);
  for (int i = 0; i < 4; ++i) {
    const Pair key = LoadPair<kWhole>(keys[i] + column, count);
    for (int row = 0; row < kRows; ++row) {
      const float* query = queries + row * query_stride;
      const auto sum = term(hn::Load(d, query), key.first, w_first, sums[row][i]);
      sums[row][i] = term(hn::Load(d, query + kLanes), key.second, w_second, sum);
    }
  }
}

/// The scores of kRows queries that attend to the same `count` rows of keys.
template <class Term, int kRows, class CacheRows>
void ScoreRows(const CachedCall& call, const CacheRows& cache, int64_t count,
               const RowScratch& scratch, int64_t first_row) {
  const FloatTag d;
  const int64_t width = call.key_width, whole = width / kPair * kPair;
  const float* queries = scratch.queries + first_row * scratch.query_stride;
  float* scores = scratch.scores + first_row * scratch.score_stride;
  for (int64_t slot = 0; slot < count; slot += 4, scores += kLanes) {
    const typename CacheRows::Type* keys[4];
    for (int64_t i = 0; i < 4; ++i) keys[i] = cache(std::min(slot + i, count - 1));
    for (int64_t group = 0; group * kTogether < call.heads; ++group) {
      FloatVector folded[kRows][kTogether];
      HWY_UNROLL(4)
      for (int64_t h = 0; h < kTogether; ++h) {
        FloatVector sums[kRows][4];
        for (int row = 0; row < kRows; ++row) {
          for (int i = 0; i < 4; ++i) sums[row][i] = hn::Zero(d);
        }
        const int64_t head = group * kTogether + h;
        if (head < call.heads) {
          const int64_t at = head * scratch.head_stride, first = head * width;
          for (int64_t column = 0; column < whole; column += kPair) {
            AddTerms<Term, true>(keys, first + column, kPair, queries + at + column,
                                 scratch.query_stride, scratch.w + at + column, sums);
          }
          if (whole < width) {
            AddTerms<Term, false>(keys, first + whole, width - whole, queries + at + whole,
                                  scratch.query_stride, scratch.w + at + whole, sums);
          }
        }
        for (int row = 0; row < kRows; ++row) folded[row][h] = FoldFour(sums[row]);
      }
      for (int row = 0; row < kRows; ++row) {
        hn::Store(SumQuads(d, folded[row]), d,
                  scores + row * scratch.score_stride + group * scratch.group_stride);
      }
    }
  }
}

/// Calls combine(value, value with its lanes swapped) until all four lanes of a quad have met.
template <class Combine>
HWY_INLINE FloatVector CombineQuads(FloatVector value, const Combine& combine) {
  value = combine(value, hn::Shuffle2301(value));
  return combine(value, hn::Shuffle1032(value));
}

/// Scores of kTogether heads become weights.
HWY_INLINE void SoftmaxHeads(float* scores, int64_t count) {
  const FloatTag d;
  const int64_t end = DivideUp(count, 4) * kLanes;
  HWY_ALIGN static constexpr float kPlace[16] = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3};
  const auto left = hn::Set(d, static_cast<float>(count - (count - 1) / 4 * 4));
  const auto last = hn::IfThenElse(hn::Lt(hn::Load(d, kPlace), left),
                                   hn::Load(d, scores + end - kLanes), hn::Neg(hn::Inf(d)));
  hn::Store(last, d, scores + end - kLanes);
  auto most = last;
  for (int64_t i = 0; i + kLanes < end; i += kLanes) most = hn::Max(most, hn::Load(d, scores + i));
  most = CombineQuads(most, [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); });
  auto sum = hn::Zero(d);
  for (int64_t i = 0; i < end; i += kLanes) {
    const auto weight = ExpNonPositive(d, hn::Sub(hn::Load(d, scores + i), most));
    hn::Store(weight, d, scores + i);
    sum = hn::Add(sum, weight);
  }
  sum = CombineQuads(sum, [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
  const auto inverse = hn::Div(hn::Set(d, 1.0F), sum);
  for (int64_t i = 0; i < end; i += kLanes) {
    hn::Store(hn::Mul(hn::Load(d, scores + i), inverse), d, scores + i);
  }
}

inline void SoftmaxRow(const CachedCall& call, const RowScratch& scratch, int64_t row,
                       int64_t count) {
  float* scores = scratch.scores + row * scratch.score_stride;
  for (int64_t head = 0; head < call.heads; head += kTogether, scores += scratch.group_stride) {
    SoftmaxHeads(scores, count);
  }
}

/// Columns of values from `first` on, in kPairs pairs, the last of `columns` columns. Pair p's
/// weights, of the first row and slot, are at weights[p].
template <int kPairs>
struct ValueColumns {
  int64_t first, columns;
  const float* weights[kPairs];
};

template <typename T, bool kWhole, int kRows, int kPairs, typename TOut>
HWY_INLINE void StoreSums(const Pair (&sums)[kRows][kPairs], TOut* to, int64_t stride,
                          int64_t count) {
  HWY_UNROLL(8)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(8)
    for (int p = 0; p < kPairs; ++p) {
      StorePair<T, kWhole>(sums[r][p], to + r * stride + p * kPair, count);
    }
  }
}

/// Rows row to row + kRows - 1 of out, the given columns: weights times the cache's rows.
template <bool kWhole, int kRows, int kPairs, class CacheRows>
void WeighRows(const CachedCall& call, const CacheRows& cache, int64_t count,
               const ValueColumns<kPairs>& values, int64_t score_stride, int64_t row) {
  using T = typename CacheRows::Type;
  const FloatTag d;
  Pair sums[kRows][kPairs];
  for (int r = 0; r < kRows; ++r) {
    for (int p = 0; p < kPairs; ++p) sums[r][p] = {hn::Zero(d), hn::Zero(d)};
  }
  const auto add = [&](int64_t slot, int64_t at) HWY_ATTR {
    const T* from = cache(slot) + values.first;
    for (int p = 0; p < kPairs; ++p) {
      const Pair value = LoadPair<kWhole>(from + p * kPair, values.columns);
      for (int r = 0; r < kRows; ++r) {
        const auto weight = hn::Set(d, values.weights[p][r * score_stride + at]);
        sums[r][p].first = hn::MulAdd(weight, value.first, sums[r][p].first);
        sums[r][p].second = hn::MulAdd(weight, value.second, sums[r][p].second);
      }
    }
  };
  int64_t slot = 0, at = 0;
  for (; slot + 4 <= count; slot += 4, at += kLanes) {
    for (int64_t i = 0; i < 4; ++i) add(slot + i, at + i);
  }
  for (int64_t i = 0; slot + i < count; ++i) add(slot + i, at + i);
  const int64_t to = row * call.out.row_stride() + values.first;
  if (call.out.dtype() == DType::kFloat32) {
    StoreSums<T, kWhole>(sums, call.out.data<float>() + to, call.out.row_stride(), values.columns);
  } else {
    StoreSums<T, kWhole>(sums, call.out.data<BFloat16>() + to, call.out.row_stride(),
                         values.columns);
  }
}

/// The same over all heads: kPairs pairs at once where there are so many.
template <int kRows, int kPairs, class CacheRows>
void WeighHeads(const CachedCall& call, const CacheRows& cache, int64_t count,
                const RowScratch& scratch, int64_t first_row, int64_t row) {
  const int64_t width = call.value_width, whole = width / kPair, stride = scratch.score_stride;
  const int64_t base = first_row * stride;
  // With no part of a pair in between, pairs go on from one head to the next.
  const int64_t heads_at_once = whole * kPair == width ? call.heads : 1;
  for (int64_t head = 0; head < call.heads; head += heads_at_once) {
    const int64_t pairs = heads_at_once * whole;
    int64_t pair = 0;
    for (; pair + kPairs <= pairs; pair += kPairs) {
      ValueColumns<kPairs> values{head * width + pair * kPair, kPair, {}};
      for (int p = 0; p < kPairs; ++p) {
        values.weights[p] = scratch.weights(head + (pair + p) / whole) + base;
      }
      WeighRows<true, kRows>(call, cache, count, values, stride, row);
    }
    for (; pair < pairs; ++pair) {
      const ValueColumns<1> values{
          head * width + pair * kPair, kPair, {scratch.weights(head + pair / whole) + base}};
      WeighRows<true, kRows>(call, cache, count, values, stride, row);
    }
    if (whole * kPair < width) {
      const ValueColumns<1> values{
          head * width + whole * kPair, width - whole * kPair, {scratch.weights(head) + base}};
      WeighRows<false, kRows>(call, cache, count, values, stride, row);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#endif  // include toggle
