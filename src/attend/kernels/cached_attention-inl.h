// Attention of single queries over rows of a cache: what the kernels for lists of slots and for
// neighbouring rows share. Included once for each instruction set.
//
// Slots are taken four at a time and heads as many together as a vector has quads, so that one
// vector holds four scores of each: their sums over lanes are made together, and one softmax serves
// all the heads of a vector. Columns are taken two vectors at a time (see column_pairs-inl.h).
#if defined(ATTEND_KERNELS_CACHED_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_CACHED_ATTENTION_INL_H_
#undef ATTEND_KERNELS_CACHED_ATTENTION_INL_H_
#else
#define ATTEND_KERNELS_CACHED_ATTENTION_INL_H_
#endif

#include <algorithm>
#include <cstddef>

#include <hwy/cache_control.h>

#include "attend/kernels/attention_common.h"
#include "attend/kernels/attention_math-inl.h"
#include "attend/kernels/cached_attention_common.h"
#include "attend/kernels/column_pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

constexpr int64_t kTogether = kLanes / 4;  ///< heads that share a vector of scores

constexpr int64_t DivideUp(int64_t count, int64_t by) { return (count + by - 1) / by; }

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
/// h / kTogether * group_stride + (1 + s / 4) * kLanes + h % kTogether * 4 + s % 4. Before them
/// stands a vector with the greatest of each head and place, and later with each head's factor.
struct RowScratch {
  int64_t head_stride;   ///< of queries and w, whole pairs
  int64_t query_stride;  ///< from one row to the next
  int64_t group_stride, score_stride;
  float *w, *queries, *scores;

  /// For `rows` rows that attend to `most` slots each at most.
  RowScratch(const CachedCall& call, int64_t rows, int64_t most)
      : head_stride(DivideUp(call.key_width, kPair) * kPair),
        query_stride(call.heads * head_stride),
        group_stride((1 + DivideUp(most, 4)) * kLanes),
        score_stride(DivideUp(call.heads, kTogether) * group_stride),
        w(attention_scratch((rows + 1) * query_stride + rows * score_stride)),
        queries(w + query_stride),
        scores(queries + rows * query_stride) {}

  /// The factor of a head of the row at `at`, which its weights follow, kLanes further on.
  const float* factor(int64_t at, int64_t head) const {
    return scores + at * score_stride + head / kTogether * group_stride + head % kTogether * 4;
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

/// Calls for a row that will be read soon.
inline void PrefetchRow(const Tensor& tensor, int64_t row) {
  constexpr int64_t kCacheLine = 64;
  const int64_t size = size_of(tensor.dtype()), bytes = tensor.columns() * size;
  const std::byte* from = tensor.raw() + row * tensor.row_stride() * size;
  for (int64_t at = 0; at < bytes; at += kCacheLine) hwy::Prefetch(from + at);
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

/// For kRows queries and four keys of one head: in each quad of lanes, a part of the four scores.
template <class Term, int kRows, typename T>
HWY_INLINE void ScoreHead(const T* const (&keys)[4], int64_t first, int64_t width,
                          const float* queries, int64_t query_stride, const float* w,
                          FloatVector (&folded)[kRows]) {
  FloatVector sums[kRows][4];
  for (int row = 0; row < kRows; ++row) {
    for (int i = 0; i < 4; ++i) sums[row][i] = hn::Zero(FloatTag());
  }
  const int64_t whole = width / kPair * kPair;
  HWY_UNROLL(8)
  for (int64_t column = 0; column < whole; column += kPair) {
    AddTerms<Term, true>(keys, first + column, kPair, queries + column, query_stride, w + column,
                         sums);
  }
  if (whole < width) {
    AddTerms<Term, false>(keys, first + whole, width - whole, queries + whole, query_stride,
                          w + whole, sums);
  }
  for (int row = 0; row < kRows; ++row) folded[row] = FoldFour(sums[row]);
}

/// The scores of kRows queries that attend to the same `count` rows of keys. kWidth: see
/// UniformWidth.
template <class Term, int kWidth, int kRows, class CacheRows>
void ScoreRows(const CachedCall& call, const CacheRows& cache, int64_t count,
               const RowScratch& scratch, int64_t first_row) {
  const FloatTag d;
  const CacheRows rows_of = cache;
  const int64_t heads = call.heads, width = kWidth > 0 ? kWidth : call.key_width;
  const int64_t head_stride = kWidth > 0 ? kWidth : scratch.head_stride;
  const int64_t query_stride = scratch.query_stride, score_stride = scratch.score_stride;
  const int64_t group_stride = scratch.group_stride;
  const float* const queries = scratch.queries + first_row * query_stride;
  const float* const w = scratch.w;
  float* const scores = scratch.scores + first_row * score_stride;
  for (int64_t slot = 0, at_slot = kLanes; slot < count; slot += 4, at_slot += kLanes) {
    const typename CacheRows::Type* keys[4];
    for (int64_t i = 0; i < 4; ++i) keys[i] = rows_of(std::min(slot + i, count - 1));
    float* to = scores;
    for (int64_t first = 0; first < heads; first += kTogether, to += group_stride) {
      FloatVector folded[kTogether][kRows];
      HWY_UNROLL(4)
      for (int64_t h = 0; h < kTogether; ++h) {
        if (kWidth > 0 || first + h < heads) {
          const int64_t at = first * head_stride + h * head_stride;
          ScoreHead<Term, kRows>(keys, first * width + h * width, width, queries + at, query_stride,
                                 w + at, folded[h]);
        } else {
          for (int row = 0; row < kRows; ++row) folded[h][row] = hn::Zero(d);
        }
      }
      HWY_UNROLL(4)
      for (int row = 0; row < kRows; ++row) {
        FloatVector of_row[kTogether];
        for (int64_t h = 0; h < kTogether; ++h) of_row[h] = folded[h][row];
        const auto sums = SumQuads(d, of_row);
        float* const most = to + row * score_stride;
        hn::Store(sums, d, most + at_slot);
        hn::Store(slot == 0 ? sums : hn::Max(hn::Load(d, most), sums), d, most);
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

/// Scores of kTogether heads become weights but for the factor, which comes to stand before them.
/// The greatest score is known; places beyond the last slot hold its score once more.
HWY_INLINE void SoftmaxHeads(float* scores, int64_t count) {
  const FloatTag d;
  HWY_ALIGN static constexpr float kPlace[16] = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3};
  const auto most =
      CombineQuads(hn::Load(d, scores), [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); });
  const int64_t last = DivideUp(count, 4) * kLanes;
  auto sum = hn::Zero(d);
  for (int64_t i = kLanes; i < last; i += kLanes) {
    const auto weight = ExpNonPositive(d, hn::Sub(hn::Load(d, scores + i), most));
    hn::Store(weight, d, scores + i);
    sum = hn::Add(sum, weight);
  }
  const int64_t before_last = (count - 1) / 4 * 4;
  const auto left = hn::Set(d, static_cast<float>(count - before_last));
  const auto weight =
      hn::IfThenElseZero(hn::Lt(hn::Load(d, kPlace), left),
                         ExpNonPositive(d, hn::Sub(hn::Load(d, scores + last), most)));
  hn::Store(weight, d, scores + last);
  sum = CombineQuads(hn::Add(sum, weight), [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
  hn::Store(hn::Div(hn::Set(d, 1.0F), sum), d, scores);
}

inline void SoftmaxRow(const CachedCall& call, const RowScratch& scratch, int64_t row,
                       int64_t count) {
  float* scores = scratch.scores + row * scratch.score_stride;
  for (int64_t head = 0; head < call.heads; head += kTogether, scores += scratch.group_stride) {
    SoftmaxHeads(scores, count);
  }
}

/// Columns of values from `first` on, in pairs, the last of `columns` columns, with the factor of
/// the first head among them, for the first row.
struct ValueColumns {
  int64_t first, columns;
  const float* factor;
};

/// From the weights of a strip's first head to those of pair p's. Where kWidth is 0, a strip is of
/// one head.
template <int kWidth>
constexpr int64_t OfPair(int p) {
  if constexpr (kWidth > 0) return p * kPair / kWidth * 4;
  return 0;
}

template <int kWidth, bool kWhole, int kRows, int kPairs, typename T, typename TOut>
HWY_INLINE void StoreSums(const Pair (&sums)[kRows][kPairs], const ValueColumns& values,
                          int64_t score_stride, TOut* to, int64_t stride) {
  const FloatTag d;
  HWY_UNROLL(4)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (int p = 0; p < kPairs; ++p) {
      const auto factor = hn::Set(d, values.factor[r * score_stride + OfPair<kWidth>(p)]);
      const Pair scaled{hn::Mul(sums[r][p].first, factor), hn::Mul(sums[r][p].second, factor)};
      StorePair<T, kWhole>(scaled, to + r * stride + p * kPair, values.columns);
    }
  }
}

/// Rows row to row + kRows - 1 of out, the given columns: weights times the cache's rows.
template <int kWidth, bool kWhole, int kRows, int kPairs, class CacheRows>
void WeighColumns(const CachedCall& call, const CacheRows& cache, int64_t count,
                  const ValueColumns& values, int64_t score_stride, int64_t row) {
  using T = typename CacheRows::Type;
  const FloatTag d;
  Pair sums[kRows][kPairs];
  for (int r = 0; r < kRows; ++r) {
    for (int p = 0; p < kPairs; ++p) sums[r][p] = {hn::Zero(d), hn::Zero(d)};
  }
  const auto add = [&](int64_t slot, const float* weights) HWY_ATTR {
    const T* from = cache(slot) + values.first;
    for (int p = 0; p < kPairs; ++p) {
      const Pair value = LoadPair<kWhole>(from + p * kPair, values.columns);
      for (int r = 0; r < kRows; ++r) {
        const auto weight = hn::Set(d, weights[r * score_stride + OfPair<kWidth>(p)]);
        sums[r][p].first = hn::MulAdd(weight, value.first, sums[r][p].first);
        sums[r][p].second = hn::MulAdd(weight, value.second, sums[r][p].second);
      }
    }
  };
  const float* weights = values.factor + kLanes;
  int64_t slot = 0;
  for (; slot + 4 <= count; slot += 4, weights += kLanes) {
    for (int64_t i = 0; i < 4; ++i) add(slot + i, weights + i);
  }
  for (; slot < count; ++slot, ++weights) add(slot, weights);
  const int64_t stride = call.out.row_stride(), to = row * stride + values.first;
  if (call.out.dtype() == DType::kFloat32) {
    StoreSums<kWidth, kWhole, kRows, kPairs, T>(sums, values, score_stride,
                                                call.out.data<float>() + to, stride);
  } else {
    StoreSums<kWidth, kWhole, kRows, kPairs, T>(sums, values, score_stride,
                                                call.out.data<BFloat16>() + to, stride);
  }
}

/// The same over all heads. kPairs: as many pairs at once as make eight sums of vectors, which is
/// what it takes to keep the multipliers busy.
template <int kWidth, int kRows, class CacheRows>
void WeighRows(const CachedCall& call, const CacheRows& cache, int64_t count,
               const RowScratch& scratch, int64_t first_row, int64_t row) {
  constexpr int kPairs = kRows == 1 ? 4 : kRows == 2 ? 2 : 1;
  const int64_t stride = scratch.score_stride;
  // With whole pairs of heads of one width, strips of columns go on from one head to the next.
  const int64_t heads_at_once = kWidth > 0 ? call.heads : 1;
  const int64_t width = heads_at_once * (kWidth > 0 ? kWidth : call.value_width);
  for (int64_t head = 0; head < call.heads; head += heads_at_once) {
    const auto values = [&](int64_t column) {
      const int64_t at = head + (kWidth > 0 ? column / std::max(kWidth, 1) : 0);
      return ValueColumns{head * width + column, std::min(kPair, width - column),
                          scratch.factor(first_row, at)};
    };
    int64_t column = 0;
    for (; column + kPairs * kPair <= width; column += kPairs * kPair) {
      WeighColumns<kWidth, true, kRows, kPairs>(call, cache, count, values(column), stride, row);
    }
    for (; column + kPair <= width; column += kPair) {
      WeighColumns<kWidth, true, kRows, 1>(call, cache, count, values(column), stride, row);
    }
    if (column < width) {
      WeighColumns<0, false, kRows, 1>(call, cache, count, values(column), stride, row);
    }
  }
}

/// The width of all heads' keys and values where that is 32 or 64 and heads fill whole vectors of
/// scores; else 0. Kernels for these widths, the common ones, know at compile time where to find
/// everything.
inline int64_t UniformWidth(const CachedCall& call) {
  const int64_t width = call.key_width;
  const bool known = width == 32 || width == 64;
  return known && width == call.value_width && call.heads % kTogether == 0 ? width : 0;
}

}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#endif  // include toggle
