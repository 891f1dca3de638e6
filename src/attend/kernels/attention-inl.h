// One head of one sequence: softmax(scores) v and its gradients, for any score. Included once for
// each instruction set.
//
// Scores stand transposed, [keys, queries], so that the lanes of a vector are queries: softmax
// needs no sums across lanes, and what happens in one query's lane is a function of that query and
// its keys alone. Queries are taken in blocks whose scores stay in the cache.
#if defined(ATTEND_KERNELS_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_ATTENTION_INL_H_
#undef ATTEND_KERNELS_ATTENTION_INL_H_
#else
#define ATTEND_KERNELS_ATTENTION_INL_H_
#endif

#include <algorithm>
#include <limits>

#include "attend/kernels/attention.h"
#include "attend/kernels/attention_common.h"
#include "attend/kernels/attention_math-inl.h"
#include "attend/kernels/dropout-inl.h"
#include "attend/kernels/small_gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

inline int64_t FloatLanes() { return static_cast<int64_t>(hn::Lanes(FloatTag())); }

inline int64_t RoundUp(int64_t count, int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

/// The rows of one head of one sequence, in a tensor of T.
template <typename T>
struct HeadRows {
  T* data;
  int64_t stride;
  HeadRows(const Tensor& tensor, int64_t first_row, int64_t first_column)
      : data(tensor.data<T>() + first_row * tensor.row_stride() + first_column),
        stride(tensor.row_stride()) {}
  HeadRows(T* rows, int64_t row_stride) : data(rows), stride(row_stride) {}
  HeadRows from(int64_t row) const { return {data + row * stride, stride}; }
};

/// Some of a sequence's queries, with the keys that any of them sees.
struct QueryBlock {
  int64_t first_query;  ///< within the sequence
  int64_t queries;
  int64_t keys;
  int64_t stride;  ///< of the rows of [keys, queries] matrices
  bool causal;

  /// Keys that the block's query at `column` sees.
  int64_t seen(int64_t column) const {
    return causal ? std::min(keys, first_query + column + 1) : keys;
  }
  /// For a [keys, queries] product: no need to compute where the tile's first key is not yet seen.
  TileRange score_range(int64_t first_key, int64_t depth) const {
    const int64_t hidden = causal ? std::max<int64_t>(first_key - first_query, 0) : 0;
    return {hidden / FloatLanes() * FloatLanes(), 0, depth, 0};
  }
  /// For a [queries, width] product over keys: query r of the tile takes the keys it sees.
  TileRange query_range(int64_t first, int64_t count) const {
    return {0, 0, seen(first), seen(first + count - 1) - seen(first)};
  }
  /// For a [keys, width] product over queries: those that see the tile's first key.
  TileRange key_range(int64_t first_key) const {
    return {0, causal ? std::clamp<int64_t>(first_key - first_query, 0, queries) : 0, queries, 0};
  }
};

/// Calls visit(tag, column) for vectors over [0, columns), the last a half where that suffices.
template <class Visit>
HWY_INLINE void ForVectors(int64_t columns, const Visit& visit) {
  const FloatTag d;
  int64_t column = 0;
  for (; columns - column > FloatLanes() / 2; column += FloatLanes()) visit(d, column);
  if (column < columns) visit(hn::Half<FloatTag>(), column);
}

/// Copies rows as floats to [rows, stride], padded with zeros to whole vectors.
template <typename T>
inline void PackRows(HeadRows<T> from, int64_t rows, int64_t width, float* to, int64_t stride) {
  const FloatTag d;
  for (int64_t row = 0; row < rows; ++row, to += stride) {
    const T* source = from.data + row * from.stride;
    int64_t column = 0;
    for (; column + FloatLanes() <= width; column += FloatLanes()) {
      hn::StoreU(LoadF32(d, source + column), d, to + column);
    }
    if (column < width) hn::StoreU(LoadSome(d, source + column, width - column), d, to + column);
  }
}

/// Writes the rows of a [rows, stride] matrix, each times factors[row] times scale, as T.
template <typename T>
inline void WriteRows(const float* from, int64_t stride, int64_t rows, int64_t width, float scale,
                      const float* factors, HeadRows<T> to) {
  const FloatTag d;
  for (int64_t row = 0; row < rows; ++row, from += stride) {
    T* target = to.data + row * to.stride;
    const auto factor = hn::Set(d, factors == nullptr ? scale : scale * factors[row]);
    int64_t column = 0;
    for (; column + FloatLanes() <= width; column += FloatLanes()) {
      StoreF32(hn::Mul(hn::LoadU(d, from + column), factor), d, target + column);
    }
    if (column < width) {
      StoreSome(hn::Mul(hn::LoadU(d, from + column), factor), d, target + column, width - column);
    }
  }
}

/// Transposes 4 x 4 numbers in each 128-bit block of four vectors.
HWY_INLINE void TransposeInBlocks(FloatVector* rows) {
  const FloatTag d;
  const hn::RepartitionToWide<FloatTag> wide;
  const auto even01 = hn::BitCast(wide, hn::InterleaveLower(d, rows[0], rows[1]));
  const auto even23 = hn::BitCast(wide, hn::InterleaveLower(d, rows[2], rows[3]));
  const auto odd01 = hn::BitCast(wide, hn::InterleaveUpper(d, rows[0], rows[1]));
  const auto odd23 = hn::BitCast(wide, hn::InterleaveUpper(d, rows[2], rows[3]));
  rows[0] = hn::BitCast(d, hn::InterleaveLower(wide, even01, even23));
  rows[1] = hn::BitCast(d, hn::InterleaveUpper(wide, even01, even23));
  rows[2] = hn::BitCast(d, hn::InterleaveLower(wide, odd01, odd23));
  rows[3] = hn::BitCast(d, hn::InterleaveUpper(wide, odd01, odd23));
}

/// Transposes as many vectors as there are lanes: element (row, column) becomes (column, row).
HWY_INLINE void TransposeSquare(FloatVector (&rows)[hn::MaxLanes(FloatTag())]) {
  [[maybe_unused]] const FloatTag d;
  constexpr std::size_t kLanes = hn::MaxLanes(FloatTag());
  for (std::size_t row = 0; row < kLanes; row += 4) TransposeInBlocks(rows + row);
  // Now vector 4 g + i holds, in block b, column 4 b + i of rows 4 g to 4 g + 3: blocks to swap.
  if constexpr (kLanes == 8) {
    for (std::size_t i = 0; i < 4; ++i) {
      const auto low = rows[i], high = rows[4 + i];
      rows[i] = hn::ConcatLowerLower(d, high, low);
      rows[4 + i] = hn::ConcatUpperUpper(d, high, low);
    }
  } else if constexpr (kLanes == 16) {
    const auto swap = [&](FloatVector a, FloatVector b, FloatVector& even, FloatVector& odd)
                          HWY_ATTR {
                            even = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b), a);
                            odd = hn::OddEvenBlocks(b, hn::SwapAdjacentBlocks(a));
                          };
    for (std::size_t i = 0; i < 4; ++i) {
      const auto a = rows[i], b = rows[4 + i], c = rows[8 + i], e = rows[12 + i];
      swap(hn::ConcatLowerLower(d, c, a), hn::ConcatLowerLower(d, e, b), rows[i], rows[4 + i]);
      swap(hn::ConcatUpperUpper(d, c, a), hn::ConcatUpperUpper(d, e, b), rows[8 + i], rows[12 + i]);
    }
  }
}

/// Transposes up to a square of numbers times `factor`. Rows beyond those there are repeat the
/// last.
template <bool kWhole, typename T>
HWY_INLINE void TransposePart(HeadRows<T> from, int64_t rows, int64_t columns, FloatVector factor,
                              float* to, int64_t stride) {
  const FloatTag d;
  constexpr int64_t kLanes = hn::MaxLanes(FloatTag());
  FloatVector square[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) {
    square[i] = hn::Mul(kWhole ? LoadF32(d, from.data) : LoadSome(d, from.data, columns), factor);
    if (i + 1 < rows) from.data += from.stride;
  }
  TransposeSquare(square);
  for (int64_t i = 0; i < kLanes; ++i, to += stride) {
    if (kWhole || i < columns) hn::StoreU(square[i], d, to);
  }
}

/// Writes rows times `scale`, transposed, to [width, stride]; columns from `rows` on, up to the
/// stride, repeat the last row.
template <typename T>
inline void TransposeRows(HeadRows<T> from, int64_t rows, int64_t width, float scale, float* to,
                          int64_t stride) {
  constexpr int64_t kLanes = hn::MaxLanes(FloatTag());
  static_assert(kLanes == 4 || kLanes == 8 || kLanes == 16);
  const auto factor = hn::Set(FloatTag(), scale);
  for (int64_t row = 0; row < rows; row += kLanes) {
    const HeadRows<T> strip = from.from(row);
    float* target = to + row;
    int64_t column = 0;
    for (; column + kLanes <= width; column += kLanes) {
      TransposePart<true>(HeadRows<T>(strip.data + column, strip.stride), rows - row, kLanes,
                          factor, target + column * stride, stride);
    }
    if (column == width) continue;
    TransposePart<false>(HeadRows<T>(strip.data + column, strip.stride), rows - row, width - column,
                         factor, target + column * stride, stride);
  }
}

/// Hides keys that lanes do not see; returns how many keys any lane of the vector sees. Rows that a
/// tile of a [keys, width] product may touch beyond them become zeros.
template <class D>
HWY_INLINE int64_t HideFuture(D d, const QueryBlock& block, int64_t column, float* scores) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t end = block.seen(column + lanes - 1);
  const hn::RebindToSigned<D> di;
  const auto query = hn::Iota(di, static_cast<int32_t>(block.first_query + column));
  const auto hidden_score = hn::Set(d, -std::numeric_limits<float>::infinity());
  for (int64_t key = block.seen(column); key < end; ++key) {
    float* at = scores + key * block.stride + column;
    const auto hidden = hn::RebindMask(d, hn::Lt(query, hn::Set(di, static_cast<int32_t>(key))));
    hn::StoreU(hn::IfThenElse(hidden, hidden_score, hn::LoadU(d, at)), d, at);
  }
  for (int64_t key = end; key < std::min(block.keys, end + kTileRows); ++key) {
    hn::StoreU(hn::Zero(d), d, scores + key * block.stride + column);
  }
  return end;
}

/// scores [keys, queries] become exp(score - the query's greatest); the inverse of their sum goes
/// to inverse_sums [queries].
inline void Softmax(const QueryBlock& block, float* scores, float* inverse_sums) {
  ForVectors(block.queries, [&](auto d, int64_t column) HWY_ATTR {
    const int64_t end = HideFuture(d, block, column, scores);
    float* const top = scores + column;
    auto greatest = hn::LoadU(d, top);
    for (int64_t key = 1; key < end; ++key) {
      greatest = hn::Max(greatest, hn::LoadU(d, top + key * block.stride));
    }
    auto sum = hn::Zero(d);
    for (int64_t key = 0; key < end; ++key) {
      float* at = top + key * block.stride;
      const auto weight = ExpNonPositive(d, hn::Sub(hn::LoadU(d, at), greatest));
      hn::StoreU(weight, d, at);
      sum = hn::Add(sum, weight);
    }
    hn::StoreU(hn::Div(hn::Set(d, 1.0F), sum), d, inverse_sums + column);
  });
}

/// factors [keys, queries] become 0 where a weight is dropped, else the scale of those kept. Drawn
/// from the token's index in the batch, the head and the key's index in the sequence.
inline void DropoutFactors(const Dropout& dropout, const QueryBlock& block, int64_t first_token,
                           int64_t head, int64_t heads, float* factors) {
  const WordTag d;
  const FloatTag df;
  const auto threshold = hn::Set(d, dropout.threshold());
  const auto kept = hn::Set(df, dropout.scale());
  const auto half_mask = hn::Set(d, 0xFFFFU);
  for (int64_t column = 0; column < block.queries; column += FloatLanes()) {
    const auto token = hn::Iota(d, static_cast<uint32_t>(first_token + column));
    for (int64_t key = 0; key < block.keys; key += 8) {
      WordVector words[4] = {hn::Set(d, static_cast<uint32_t>(key / 8 * heads + head)), token,
                             hn::Set(d, dropout.key.op), hn::Set(d, dropout.key.lane)};
      Philox(words, dropout.key.seed);
      for (int64_t i = 0; i < std::min<int64_t>(8, block.keys - key); ++i) {
        const auto word = words[i / 2];
        const auto bits = i % 2 == 0 ? hn::And(word, half_mask) : hn::ShiftRight<16>(word);
        const auto dropped = hn::RebindMask(df, hn::Lt(bits, threshold));
        hn::StoreU(hn::IfThenZeroElse(dropped, kept), df,
                   factors + (key + i) * block.stride + column);
      }
    }
  }
}

/// weights *= factors, both [keys, queries].
inline void ApplyFactors(const QueryBlock& block, const float* factors, float* weights) {
  ForVectors(block.queries, [&](auto d, int64_t column) HWY_ATTR {
    const int64_t end = block.seen(column + static_cast<int64_t>(hn::Lanes(d)) - 1);
    for (int64_t key = 0; key < end; ++key) {
      const int64_t at = key * block.stride + column;
      hn::StoreU(hn::Mul(hn::LoadU(d, weights + at), hn::LoadU(d, factors + at)), d, weights + at);
    }
  });
}

/// The gradient of softmax, in place: d_weights, those of the (dropped) weights, become those of
/// the scores; weights, exp(score - greatest) on entry, become the normalised and dropped ones.
/// `factors` is null without dropout.
inline void SoftmaxGradient(const QueryBlock& block, const float* inverse_sums,
                            const float* factors, float* weights, float* d_weights) {
  ForVectors(block.queries, [&](auto d, int64_t column) HWY_ATTR {
    const int64_t end = block.seen(column + static_cast<int64_t>(hn::Lanes(d)) - 1);
    const auto inverse_sum = hn::LoadU(d, inverse_sums + column);
    auto inner = hn::Zero(d);
    for (int64_t key = 0; key < end; ++key) {
      const int64_t at = key * block.stride + column;
      const auto weight = hn::Mul(hn::LoadU(d, weights + at), inverse_sum);
      auto gradient = hn::LoadU(d, d_weights + at);
      if (factors != nullptr) {
        gradient = hn::Mul(gradient, hn::LoadU(d, factors + at));
        hn::StoreU(gradient, d, d_weights + at);
      }
      hn::StoreU(weight, d, weights + at);
      inner = hn::MulAdd(weight, gradient, inner);
    }
    for (int64_t key = 0; key < end; ++key) {
      const int64_t at = key * block.stride + column;
      const auto weight = hn::LoadU(d, weights + at);
      hn::StoreU(hn::Mul(weight, hn::Sub(hn::LoadU(d, d_weights + at), inner)), d, d_weights + at);
      if (factors != nullptr) {
        hn::StoreU(hn::Mul(weight, hn::LoadU(d, factors + at)), d, weights + at);
      }
    }
    for (int64_t key = end; key < std::min(block.keys, end + kTileRows); ++key) {
      hn::StoreU(hn::Zero(d), d, d_weights + key * block.stride + column);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#endif  // include toggle
