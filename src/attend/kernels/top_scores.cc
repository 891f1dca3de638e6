#include "attend/kernels/top_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/top_scores.cc"
#include "attend/kernels/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include "attend/kernels/attention_math-inl.h"
#include "attend/kernels/product_tile-inl.h"

#ifndef ATTEND_KERNELS_TOP_SCORES_ONCE
#define ATTEND_KERNELS_TOP_SCORES_ONCE
namespace attend {

/// What is known of a row after some of its tiles.
struct RowSoFar {
  float max = -std::numeric_limits<float>::infinity();
  float sum_exp = 0;  ///< of exp(score - max)
  int64_t kept = 0;
};

}  // namespace attend
#endif

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

/// The greatest score; NaN where one is NaN or +infinity.
template <class Row>
HWY_INLINE float GreatestOf(const Row& row, int64_t columns) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto infinity = hn::Inf(d);
  auto most = hn::Neg(infinity);
  auto good = hn::Eq(most, most);
  const auto add = [&](FloatVector x) HWY_ATTR {
    most = hn::Max(most, x);
    good = hn::And(good, hn::Lt(x, infinity));
  };
  int64_t i = 0;
  for (; i + lanes <= columns; i += lanes) add(row.Load(i));
  if (i < columns) {
    const auto rest = hn::FirstN(d, static_cast<std::size_t>(columns - i));
    add(hn::IfThenElse(rest, row.LoadSome(i, columns - i), hn::Neg(infinity)));
  }
  if (!hn::AllTrue(d, good)) return std::numeric_limits<float>::quiet_NaN();
  return hn::GetLane(hn::MaxOfLanes(d, most));
}

/// The sum of exp(score - max), for scores of at most max.
template <class Row>
HWY_INLINE float SumExpOf(const Row& row, int64_t columns, float max) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto greatest = hn::Set(d, max);
  auto sum0 = hn::Zero(d), sum1 = sum0;
  int64_t i = 0;
  for (; i + 2 * lanes <= columns; i += 2 * lanes) {
    sum0 = hn::Add(sum0, ExpNonPositive(d, hn::Sub(row.Load(i), greatest)));
    sum1 = hn::Add(sum1, ExpNonPositive(d, hn::Sub(row.Load(i + lanes), greatest)));
  }
  for (; i < columns; i += lanes) {
    const int64_t count = std::min(lanes, columns - i);
    const auto rest = hn::FirstN(d, static_cast<std::size_t>(count));
    const auto power = ExpNonPositive(d, hn::Sub(row.LoadSome(i, count), greatest));
    sum0 = hn::Add(sum0, hn::IfThenElseZero(rest, power));
  }
  return SumLanes(d, hn::Add(sum0, sum1));
}

/// The k best of a row so far, in order.
class BestOfRow {
 public:
  BestOfRow(int64_t k, int64_t& kept, int32_t* indices, float* scores)
      : k_(k), kept_(kept), indices_(indices), scores_(scores) {}

  bool full() const { return kept_ == k_; }
  float least() const { return scores_[k_ - 1]; }

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

 private:
  int64_t k_;
  int64_t& kept_;
  int32_t* indices_;
  float* scores_;
};

/// Offers a tile's scores; vectors in which none is above the k-th best are passed over.
template <class Row>
HWY_INLINE void OfferAll(const Row& row, int64_t columns, int64_t first_column, BestOfRow& best) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN float values[hn::MaxLanes(FloatTag())];
  for (int64_t i = 0; i < columns; i += lanes) {
    const int64_t count = std::min(lanes, columns - i);
    const auto scores = count == lanes ? row.Load(i) : row.LoadSome(i, count);
    if (best.full() && hn::AllFalse(d, hn::Gt(scores, hn::Set(d, best.least())))) continue;
    hn::Store(scores, d, values);
    for (int64_t lane = 0; lane < count; ++lane) {
      best.Offer(values[lane], first_column + i + lane);
    }
  }
}

template <class Row>
HWY_INLINE void AddRow(const Row& row, const ProductTile& tile, RowSoFar& so_far, BestOfRow best) {
  const float greatest = GreatestOf(row, tile.columns);
  if (!(greatest <= so_far.max)) {  // greater, or not a number, which stays so
    so_far.sum_exp *= std::exp(so_far.max - greatest);
    so_far.max = greatest;
  }
  if (std::isfinite(so_far.max)) so_far.sum_exp += SumExpOf(row, tile.columns, so_far.max);
  if (!best.full() || !(greatest <= best.least())) {
    OfferAll(row, tile.columns, tile.first_column, best);
  }
}

template <class Sums>
void AddSums(const Sums& sums, const ProductTile& tile, int64_t k, RowSoFar* rows, TopScores& top) {
  for (int64_t r = 0; r < tile.rows; ++r) {
    const int64_t at = (tile.first_row + r) * k;
    RowSoFar& so_far = rows[tile.first_row + r];
    AddRow(sums.Row(r), tile, so_far,
           BestOfRow(k, so_far.kept, top.indices.data() + at, top.scores.data() + at));
  }
}

void AddTile(const ProductTile& tile, int64_t k, RowSoFar* rows, TopScores& top) {
  if (tile.int8_sums != nullptr) {
    AddSums(ScaledSums(tile), tile, k, rows, top);
  } else {
    AddSums(PlainSums(tile), tile, k, rows, top);
  }
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
  TopScoresOfTiles(int64_t rows, int64_t columns, int64_t k, std::span<const int32_t> wanted,
                   TopScores& top)
      : k_(k), wanted_(wanted), top_(top) {
    if (k < 1 || k > columns) fail("the {} best of {} scores", k, columns);
    for (const int32_t index : wanted) {
      if (index < 0 || index >= columns) fail("score {} of {}", index, columns);
    }
    const auto count = static_cast<std::size_t>(rows);
    rows_.assign(count, {});
    top.indices.resize(count * static_cast<std::size_t>(k));
    top.scores.resize(count * static_cast<std::size_t>(k));
    top.log_sums.resize(count);
    top.wanted.resize(count * wanted.size());
  }

  void add(const ProductTile& tile) {
    const ProfileScope scope("top scores");
    HWY_DYNAMIC_DISPATCH(AddTile)(tile, k_, rows_.data(), top_);
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      const int64_t column = wanted_[i] - tile.first_column;
      if (column < 0 || column >= tile.columns) continue;
      for (int64_t row = 0; row < tile.rows; ++row) {
        const auto place = static_cast<std::size_t>(tile.first_row + row) * wanted_.size() + i;
        top_.wanted[place] = score(tile, row, column);
      }
    }
  }

  void finish() {
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      top_.log_sums[row] = rows_[row].max + std::log(rows_[row].sum_exp);
    }
  }

 private:
  static float score(const ProductTile& tile, int64_t row, int64_t column) {
    const int64_t at = row * tile.columns + column;
    if (tile.int8_sums == nullptr) return tile.sums[at];
    return static_cast<float>(tile.int8_sums[at]) *
           (tile.column_scales[column] * tile.row_scales[row]);
  }

  int64_t k_;
  std::span<const int32_t> wanted_;
  TopScores& top_;
  std::vector<RowSoFar> rows_;
};

}  // namespace

void top_scores(const Tensor& logits, int64_t k, std::span<const int32_t> wanted, TopScores& top) {
  TopScoresOfTiles tiles(logits.rows(), logits.columns(), k, wanted, top);
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
  top_scores(logits, k, {}, top);
  return top;
}

void project_top_scores(const Tensor& x, const PackedMatrix& weight, int64_t k,
                        std::span<const int32_t> wanted, TopScores& top) {
  TopScoresOfTiles tiles(x.rows(), weight.out(), k, wanted, top);
  multiply_tiles(x, weight, [&](const ProductTile& tile) { tiles.add(tile); });
  tiles.finish();
}

}  // namespace attend
#endif  // HWY_ONCE
