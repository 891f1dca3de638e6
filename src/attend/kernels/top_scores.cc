#include "attend/kernels/top_scores.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/top_scores.cc"
#include "attend/kernels/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include "attend/kernels/product_tile-inl.h"

#ifndef ATTEND_KERNELS_TOP_SCORES_ONCE
#define ATTEND_KERNELS_TOP_SCORES_ONCE
namespace attend {

/// What is known of a row after some of its tiles.
struct RowSoFar {
  float reference = -std::numeric_limits<float>::infinity();  ///< near the greatest score
  float sum_exp = 0;                                          ///< of exp(score - reference)
  int64_t kept = 0;
};

}  // namespace attend
#endif

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

/// The greatest of the scores in each lane.
struct LaneMaxima {
  FloatVector most;
  bool good = true;  ///< no score is NaN or +infinity

  HWY_INLINE float Greatest() const {
    if (!good) return std::numeric_limits<float>::quiet_NaN();
    return hn::GetLane(hn::MaxOfLanes(FloatTag(), most));
  }
};

/// Writes a tile's row as floats, `scores`, where it is not that already.
template <class Row>
HWY_INLINE LaneMaxima ReadRow(const Row& row, int64_t columns, float* scores) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto infinity = hn::Inf(d);
  auto most = hn::Neg(infinity);
  auto good = hn::Eq(most, most);
  int64_t i = 0;
  for (; i + lanes <= columns; i += lanes) {
    const auto x = row.Load(i);
    hn::StoreU(x, d, scores + i);
    most = hn::Max(most, x);
    good = hn::And(good, hn::Lt(x, infinity));
  }
  if (i < columns) {
    const auto rest = hn::FirstN(d, static_cast<std::size_t>(columns - i));
    const auto x = hn::IfThenElse(rest, row.LoadSome(i, columns - i), hn::Neg(infinity));
    hn::StoreU(x, d, scores + i);
    most = hn::Max(most, x);
    good = hn::And(good, hn::Lt(x, infinity));
  }
  return {most, hn::AllTrue(d, good)};
}

/// 2^x to 5e-6 of the value, for x below 128; tiny ones may be 0 or 2^-126.
HWY_INLINE FloatVector PowerOfTwo(FloatVector x) {
  const FloatTag d;
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  // Two instructions take the number apart and put it together; the polynomial is for [0, 1).
  constexpr int kLessFloor = 1;
  const FloatVector f{_mm512_reduce_ps(x.raw, kLessFloor)};
  auto p = hn::Set(d, 0x1.bb7cd4p-7F);
  p = hn::MulAdd(p, f, hn::Set(d, 0x1.aa13fp-5F));
  p = hn::MulAdd(p, f, hn::Set(d, 0x1.ee798ap-3F));
  p = hn::MulAdd(p, f, hn::Set(d, 0x1.62d166p-1F));
  p = hn::MulAdd(p, f, hn::Set(d, 0x1.00002cp+0F));
  return FloatVector{_mm512_scalef_ps(p.raw, x.raw)};
#else
  const hn::RebindToSigned<FloatTag> di;
  const auto shifter = hn::Set(d, 12582912.0F);  // 1.5 * 2^23: the sum's low bits are the integer
  const auto clamped = hn::Max(x, hn::Set(d, -126.0F));
  const auto shifted = hn::Add(clamped, shifter);
  const auto f = hn::Sub(clamped, hn::Sub(shifted, shifter));  // in [-0.5, 0.5]
  auto p = hn::Set(d, 0x1.3a02ccp-7F);
  p = hn::MulAdd(p, f, hn::Set(d, 0x1.c9fc46p-5F));
  p = hn::MulAdd(p, f, hn::Set(d, 0x1.ec0378p-3F));
  p = hn::MulAdd(p, f, hn::Set(d, 0x1.62e12cp-1F));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0F));
  const auto power = hn::ShiftLeft<23>(hn::BitCast(di, shifted));
  return hn::BitCast(d, hn::Add(hn::BitCast(di, p), power));
#endif
}

/// The sum of exp(score - max), for scores of at most max. `scores` has whole vectors.
HWY_INLINE float SumExpOf(const float* scores, int64_t columns, float max) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr float kLog2OfE = 1.44269504F;
  const auto scale = hn::Set(d, kLog2OfE), greatest = hn::Set(d, max);
  FloatVector sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  const auto power = [&](int64_t i) HWY_ATTR {
    return PowerOfTwo(hn::Mul(hn::Sub(hn::LoadU(d, scores + i), greatest), scale));
  };
  int64_t i = 0;
  for (; i + 4 * lanes <= columns; i += 4 * lanes) {
    sums[0] = hn::Add(sums[0], power(i));
    sums[1] = hn::Add(sums[1], power(i + lanes));
    sums[2] = hn::Add(sums[2], power(i + 2 * lanes));
    sums[3] = hn::Add(sums[3], power(i + 3 * lanes));
  }
  for (; i < columns; i += lanes) {
    const auto rest = hn::FirstN(d, static_cast<std::size_t>(std::min(lanes, columns - i)));
    sums[0] = hn::Add(sums[0], hn::IfThenElseZero(rest, power(i)));
  }
  return SumLanes(d, hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3])));
}

/// The k best of a row so far, in order.
class BestOfRow {
 public:
  BestOfRow(int64_t k, int64_t& kept, int32_t* indices, float* scores)
      : k_(k), kept_(kept), indices_(indices), scores_(scores) {}

  bool full() const { return kept_ == k_; }
  float least() const { return scores_[k_ - 1]; }
  float greatest() const { return scores_[0]; }

  void Offer(float value, int64_t index) {
    const float score = std::isnan(value) ? -std::numeric_limits<float>::infinity() : value;
    if (full() && !(score > least())) return;
    int64_t place = full() ? k_ - 1 : kept_++;
    for (; place > 0 && scores_[place - 1] < score; --place) {
      scores_[place] = scores_[place - 1];
      indices_[place] = indices_[place - 1];
    }
    scores_[place] = score;
    indices_[place] = static_cast<int32_t>(index);
  }

  /// Takes out what was offered from this index on; room is left for it to come again.
  void Forget(int64_t index) {
    int64_t kept = 0;
    for (int64_t i = 0; i < kept_; ++i) {
      if (indices_[i] >= index) continue;
      scores_[kept] = scores_[i];
      indices_[kept++] = indices_[i];
    }
    kept_ = kept;
  }

 private:
  int64_t k_;
  int64_t& kept_;
  int32_t* indices_;
  float* scores_;
};

/// A score that at least k of the tile's reach: the k-th greatest of the lanes' different maxima.
HWY_INLINE float ReachedByMany(const LaneMaxima& maxima, int64_t k) {
  const FloatTag d;
  const auto lowest = hn::Neg(hn::Inf(d));
  if (k > static_cast<int64_t>(hn::Lanes(d)) || !maxima.good) return hn::GetLane(lowest);
  auto most = maxima.most, greatest = hn::MaxOfLanes(d, most);
  for (int64_t i = 1; i < k; ++i) {
    most = hn::IfThenElse(hn::Eq(most, greatest), lowest, most);
    greatest = hn::MaxOfLanes(d, most);
  }
  return hn::GetLane(greatest);
}

/// Offers those of a vector's scores that are not below the bar; false where one is not finite.
HWY_INLINE bool OfferVector(FloatVector scores, hn::Mask<FloatTag> below, int64_t first_column,
                            BestOfRow& best) {
  const FloatTag d;
  HWY_ALIGN float values[hn::MaxLanes(FloatTag())];
  uint8_t bits[8] = {};
  hn::Store(scores, d, values);
  hn::StoreMaskBits(d, hn::Not(below), bits);
  uint32_t enough = bits[0] | static_cast<uint32_t>(bits[1]) << 8;
  bool finite = true;
  for (; enough != 0; enough &= enough - 1) {
    const int lane = std::countr_zero(enough);
    finite = finite && std::isfinite(values[lane]);
    best.Offer(values[lane], first_column + lane);
  }
  return finite;
}

/// Offers a tile's scores; vectors in which none is good enough are passed over.
HWY_INLINE void OfferAll(const float* scores, int64_t columns, int64_t first_column, float least,
                         BestOfRow& best) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto bar = hn::Set(d, least);
  for (int64_t i = 0; i < columns; i += lanes) {
    const auto x = hn::LoadU(d, scores + i);
    // What is not a number counts as enough: it is the row's last choice, but one.
    auto below = hn::Lt(x, bar);
    if (columns - i < lanes) {
      below = hn::Or(below, hn::Not(hn::FirstN(d, static_cast<std::size_t>(columns - i))));
    }
    if (hn::AllTrue(d, below)) continue;
    OfferVector(x, below, first_column + i, best);
    if (best.full()) bar = hn::Max(bar, hn::Set(d, best.least()));
  }
}

/// A tile of which nothing is known: first its greatest score, then the rest.
template <bool kSums>
HWY_INLINE void AddRow(const float* scores, const LaneMaxima& maxima, const ProductTile& tile,
                       int64_t k, RowSoFar& so_far, BestOfRow& best) {
  const float greatest = maxima.Greatest();
  if (!(greatest <= so_far.reference)) {  // greater, or not a number, which stays so
    if (so_far.sum_exp != 0) so_far.sum_exp *= std::exp(so_far.reference - greatest);
    so_far.reference = greatest;
  }
  if (kSums && std::isfinite(so_far.reference)) {
    so_far.sum_exp += SumExpOf(scores, tile.columns, so_far.reference);
  }
  if (best.full() && greatest <= best.least()) return;
  const float least = best.full() ? best.least() : ReachedByMany(maxima, k);
  OfferAll(scores, tile.columns, tile.first_column, least, best);
}

/// One pass over a tile of a row that has k good scores and a reference. Powers are good as long as
/// no score is far above it: then false, and nothing is changed but what was offered.
template <bool kSums, class Row>
HWY_INLINE bool AddInOnePass(const Row& row, const ProductTile& tile, RowSoFar& so_far,
                             BestOfRow& best) {
  constexpr float kLog2OfE = 1.44269504F, kMostAbove = 60;
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), columns = tile.columns;
  const auto scale = hn::Set(d, kLog2OfE), reference = hn::Set(d, so_far.reference * kLog2OfE);
  auto bar = hn::Set(d, best.least());
  FloatVector sums[2] = {hn::Zero(d), hn::Zero(d)};
  bool finite = true;
  const auto add = [&](FloatVector x, int64_t i, FloatVector& sum) HWY_ATTR {
    const auto below = hn::Lt(x, bar);
    if (kSums) sum = hn::Add(sum, PowerOfTwo(hn::MulSub(x, scale, reference)));
    if (HWY_LIKELY(hn::AllTrue(d, below))) return;
    finite = OfferVector(x, below, tile.first_column + i, best) && finite;
    bar = hn::Set(d, best.least());
  };
  int64_t i = 0;
  for (; i + 2 * lanes <= columns; i += 2 * lanes) {
    add(row.Load(i), i, sums[0]);
    add(row.Load(i + lanes), i + lanes, sums[1]);
  }
  for (; i < columns; i += lanes) {
    const int64_t count = std::min(lanes, columns - i);
    const auto rest = hn::FirstN(d, static_cast<std::size_t>(count));
    add(hn::IfThenElse(rest, row.LoadSome(i, count), hn::Neg(hn::Inf(d))), i, sums[0]);
  }
  if (!finite) so_far.reference = std::numeric_limits<float>::quiet_NaN();
  if (best.greatest() > so_far.reference + kMostAbove) return false;
  if (kSums) so_far.sum_exp += SumLanes(d, hn::Add(sums[0], sums[1]));
  return true;
}

template <bool kSums, class Sums>
void AddSums(const Sums& sums, const ProductTile& tile, int64_t k, RowSoFar* rows, float* scores,
             TopScores& top) {
  for (int64_t r = 0; r < tile.rows; ++r) {
    const int64_t at = (tile.first_row + r) * k;
    RowSoFar& so_far = rows[tile.first_row + r];
    BestOfRow best(k, so_far.kept, top.indices.data() + at, top.scores.data() + at);
    const bool known = best.full() && std::isfinite(so_far.reference);
    if (known && AddInOnePass<kSums>(sums.Row(r), tile, so_far, best)) continue;
    if (known) best.Forget(tile.first_column);
    const LaneMaxima maxima = ReadRow(sums.Row(r), tile.columns, scores);
    AddRow<kSums>(scores, maxima, tile, k, so_far, best);
  }
}

template <bool kSums>
void AddTileWith(const ProductTile& tile, int64_t k, RowSoFar* rows, float* scores,
                 TopScores& top) {
  if (tile.int8_sums != nullptr) {
    AddSums<kSums>(ScaledSums(tile), tile, k, rows, scores, top);
  } else {
    AddSums<kSums>(PlainSums(tile), tile, k, rows, scores, top);
  }
}

void AddTile(const ProductTile& tile, const TopScoresWanted& wanted, RowSoFar* rows, float* scores,
             TopScores& top) {
  (wanted.log_sums ? AddTileWith<true> : AddTileWith<false>)(tile, wanted.best, rows, scores, top);
}

}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "attend/base/error.h"
#include "attend/base/profile.h"

namespace attend {

HWY_EXPORT(AddTile);

namespace {

/// Tiles in, the k best out.
class TopScoresOfTiles {
 public:
  TopScoresOfTiles(int64_t rows, int64_t columns, const TopScoresWanted& wanted, TopScores& top)
      : wanted_(wanted), top_(top) {
    const int64_t k = wanted.best;
    if (k < 1 || k > columns) fail("the {} best of {} scores", k, columns);
    for (const int32_t index : wanted.scores) {
      if (index < 0 || index >= columns) fail("score {} of {}", index, columns);
    }
    const auto count = static_cast<std::size_t>(rows);
    rows_.assign(count, {});
    constexpr int64_t kMostLanes = 16;
    scores_.resize(static_cast<std::size_t>(columns + kMostLanes));
    top.indices.resize(count * static_cast<std::size_t>(k));
    top.scores.resize(count * static_cast<std::size_t>(k));
    top.log_sums.resize(count);
    top.wanted.resize(count * wanted.scores.size());
  }

  void add(const ProductTile& tile) {
    const ProfileScope scope("top scores");
    HWY_DYNAMIC_DISPATCH(AddTile)(tile, wanted_, rows_.data(), scores_.data(), top_);
    for (std::size_t i = 0; i < wanted_.scores.size(); ++i) {
      const int64_t column = wanted_.scores[i] - tile.first_column;
      if (column < 0 || column >= tile.columns) continue;
      for (int64_t row = 0; row < tile.rows; ++row) {
        const auto place =
            static_cast<std::size_t>(tile.first_row + row) * wanted_.scores.size() + i;
        top_.wanted[place] = score(tile, row, column);
      }
    }
  }

  void finish() {
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      const RowSoFar& known = rows_[row];
      if (wanted_.log_sums || !std::isfinite(known.reference)) {
        top_.log_sums[row] = known.reference + std::log(known.sum_exp);
      } else {
        top_.log_sums[row] = top_.scores[row * static_cast<std::size_t>(wanted_.best)];
      }
    }
  }

 private:
  static float score(const ProductTile& tile, int64_t row, int64_t column) {
    const int64_t at = row * tile.columns + column;
    if (tile.int8_sums == nullptr) return tile.sums[at];
    const QuantizedRow& how = tile.quantized_rows[row];
    const float centred =
        std::fma(-how.zero, tile.column_sums[column], static_cast<float>(tile.int8_sums[at]));
    return centred * (tile.column_scales[column] * how.scale);
  }

  TopScoresWanted wanted_;
  TopScores& top_;
  std::vector<RowSoFar> rows_;
  std::vector<float> scores_;  ///< of a row of a tile, and a vector
};

}  // namespace

void top_scores(const Tensor& logits, const TopScoresWanted& wanted, TopScores& top) {
  TopScoresOfTiles tiles(logits.rows(), logits.columns(), wanted, top);
  for (int64_t row = 0; row < logits.rows(); ++row) {
    tiles.add({.first_row = row,
               .rows = 1,
               .first_column = 0,
               .columns = logits.columns(),
               .sums = logits.data<float>() + row * logits.row_stride()});
  }
  tiles.finish();
}

TopScores top_scores(const Tensor& logits, int64_t k) {
  TopScores top;
  top_scores(logits, {.best = k}, top);
  return top;
}

void project_top_scores(const Tensor& x, const PackedMatrix& weight, const TopScoresWanted& wanted,
                        TopScores& top) {
  TopScoresOfTiles tiles(x.rows(), weight.out(), wanted, top);
  multiply_tiles(x, weight, [&](const ProductTile& tile) { tiles.add(tile); });
  tiles.finish();
}

}  // namespace attend
#endif  // HWY_ONCE
