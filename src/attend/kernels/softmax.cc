#include "attend/kernels/softmax.h"

#include <algorithm>
#include <cmath>
#include <vector>

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/softmax.cc"
#include "attend/kernels/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include "attend/kernels/math-inl.h"
#include "attend/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

struct RowSums {
  float max;
  float sum;      ///< of the scores
  float sum_exp;  ///< of exp(score - max)
};

inline void MaxAndSum(const float* row, int64_t columns, RowSums& sums) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto max0 = hn::Set(d, -INFINITY), max1 = max0, sum0 = hn::Zero(d), sum1 = sum0;
  int64_t i = 0;
  for (; i + 2 * lanes <= columns; i += 2 * lanes) {
    const auto first = hn::LoadU(d, row + i), second = hn::LoadU(d, row + i + lanes);
    max0 = hn::Max(max0, first);
    max1 = hn::Max(max1, second);
    sum0 = hn::Add(sum0, first);
    sum1 = hn::Add(sum1, second);
  }
  sums.max = hn::GetLane(hn::MaxOfLanes(d, hn::Max(max0, max1)));
  sums.sum = SumLanes(d, hn::Add(sum0, sum1));
  for (; i < columns; ++i) {
    sums.max = std::max(sums.max, row[i]);
    sums.sum += row[i];
  }
}

/// Adds up exp(score - max) and puts each in the score's place.
inline void SumExp(float* row, int64_t columns, RowSums& sums) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto max = hn::Set(d, sums.max);
  auto total = hn::Zero(d);
  for (int64_t i = 0; i < columns; i += lanes) {
    const int64_t rest = columns - i;
    auto e = Exp(hn::Sub(LoadSome(d, row + i, rest), max));
    if (rest < lanes) {
      e = hn::IfThenElseZero(hn::FirstN(d, static_cast<std::size_t>(rest)), e);
    }
    StoreSome(e, d, row + i, rest);
    total = hn::Add(total, e);
  }
  sums.sum_exp = SumLanes(d, total);
}

template <typename T>
void StoreGradient(const float* exponentials, int64_t columns, int64_t target, float inverse,
                   float smoothing, float scale, T* gradient) {
  const FloatTag d;
  const auto factor = hn::Set(d, inverse * scale);
  const float spread = smoothing / static_cast<float>(columns) * scale;
  const auto offset = hn::Set(d, spread);
  for (int64_t i = 0; i < columns; i += static_cast<int64_t>(hn::Lanes(d))) {
    const int64_t rest = columns - i;
    StoreSome(hn::MulSub(LoadSome(d, exponentials + i, rest), factor, offset), d, gradient + i,
              rest);
  }
  const hn::CappedTag<float, 1> one;
  const float at_target = exponentials[target] * inverse * scale - spread - (1 - smoothing) * scale;
  StoreF32(hn::Set(one, at_target), one, gradient + target);
}

/// Adds a row's loss, times weight. Returns whether the target has the highest score.
bool AddRow(const RowSums& sums, float target_score, int64_t columns, float smoothing,
            double weight, LossSums& to) {
  const double log_sum = static_cast<double>(sums.max) + std::log(sums.sum_exp);
  const double nll = log_sum - static_cast<double>(target_score);
  const double uniform = log_sum - static_cast<double>(sums.sum) / static_cast<double>(columns);
  const double share = static_cast<double>(smoothing);
  to.nll += weight * nll;
  to.loss += weight * ((1 - share) * nll + share * uniform);
  return target_score == sums.max;
}

/// Calls store(where the row's gradient goes) with the type that it has.
template <typename Store>
void WithGradientRow(const Tensor& gradient, int64_t row, const Store& store) {
  const int64_t at = row * gradient.row_stride();
  if (gradient.dtype() == DType::kFloat32) {
    store(gradient.data<float>() + at);
  } else {
    store(gradient.data<BFloat16>() + at);
  }
}

LossSums CrossEntropy(const Tensor& logits, std::span<const int32_t> targets, float smoothing,
                      float scale, const Tensor& d_logits) {
  LossSums result;
  const int64_t columns = logits.columns();
  for (int64_t r = 0; r < logits.rows(); ++r) {
    float* row = logits.data<float>() + r * logits.row_stride();
    const int64_t target = targets[static_cast<std::size_t>(r)];
    const float score = row[target];
    RowSums sums{};
    MaxAndSum(row, columns, sums);
    SumExp(row, columns, sums);
    result.correct += AddRow(sums, score, columns, smoothing, 1, result) ? 1 : 0;
    ++result.tokens;
    if (!d_logits.defined()) continue;
    WithGradientRow(d_logits, r, [&](auto* gradient) {
      StoreGradient(row, columns, target, 1 / sums.sum_exp, smoothing, scale, gradient);
    });
  }
  return result;
}

/// One token's two rows of logits a and b, from scores to exponentials.
struct RowPair {
  float* row[2];
  RowSums sums[2];
  float* difference;  ///< log p_a - log p_b, but for what is the same in all columns
  float mean[2];      ///< of the difference, under p_a and under p_b
};

/// Adds up exp(score - max) and the difference it weighs, of both rows in one visit, and puts the
/// exponentials in the scores' place.
inline void SumExpOfPair(int64_t columns, RowPair& pair) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto max_a = hn::Set(d, pair.sums[0].max), max_b = hn::Set(d, pair.sums[1].max);
  auto total_a = hn::Zero(d), total_b = total_a, weighed_a = total_a, weighed_b = total_a;
  for (int64_t i = 0; i < columns; i += lanes) {
    const int64_t rest = columns - i;
    const auto a = hn::Sub(LoadSome(d, pair.row[0] + i, rest), max_a);
    const auto b = hn::Sub(LoadSome(d, pair.row[1] + i, rest), max_b);
    const auto difference = hn::Sub(a, b);
    auto exp_a = Exp(a), exp_b = Exp(b);
    if (rest < lanes) {
      const auto there = hn::FirstN(d, static_cast<std::size_t>(rest));
      exp_a = hn::IfThenElseZero(there, exp_a);
      exp_b = hn::IfThenElseZero(there, exp_b);
    }
    StoreSome(exp_a, d, pair.row[0] + i, rest);
    StoreSome(exp_b, d, pair.row[1] + i, rest);
    StoreSome(difference, d, pair.difference + i, rest);
    total_a = hn::Add(total_a, exp_a);
    total_b = hn::Add(total_b, exp_b);
    weighed_a = hn::MulAdd(exp_a, difference, weighed_a);
    weighed_b = hn::MulAdd(exp_b, difference, weighed_b);
  }
  pair.sums[0].sum_exp = SumLanes(d, total_a);
  pair.sums[1].sum_exp = SumLanes(d, total_b);
  pair.mean[0] = SumLanes(d, weighed_a) / pair.sums[0].sum_exp;
  pair.mean[1] = SumLanes(d, weighed_b) / pair.sums[1].sum_exp;
}

/// Row `own` of a pair's gradient. With D the difference of the logarithms, own minus other, and E
/// its mean under p_own, the divergence's part is p_own (D - E + 1) - p_other, times alpha / 4.
template <typename T>
void StorePairGradient(const RowPair& pair, int own, int64_t columns, int64_t target,
                       float smoothing, float alpha, float scale, T* gradient) {
  const FloatTag d;
  const hn::CappedTag<float, 1> one;
  const float sign = own == 0 ? 1.0F : -1.0F, weight = alpha / 4 * scale;
  const float inverse = 1 / pair.sums[own].sum_exp;
  const float slope = sign * weight * inverse;
  const float base = (scale / 2 + weight * (1 - sign * pair.mean[own])) * inverse;
  const float pull = weight / pair.sums[1 - own].sum_exp;
  const float spread = smoothing / static_cast<float>(columns) * scale / 2;
  const float *mine = pair.row[own], *others = pair.row[1 - own];
  const auto gradient_at = [&](auto tag, int64_t i, int64_t count, float offset) HWY_ATTR {
    const auto factor = hn::MulAdd(LoadSome(tag, pair.difference + i, count), hn::Set(tag, slope),
                                   hn::Set(tag, base));
    const auto other =
        hn::MulAdd(LoadSome(tag, others + i, count), hn::Set(tag, pull), hn::Set(tag, offset));
    return hn::MulSub(LoadSome(tag, mine + i, count), factor, other);
  };
  for (int64_t i = 0; i < columns; i += static_cast<int64_t>(hn::Lanes(d))) {
    StoreSome(gradient_at(d, i, columns - i, spread), d, gradient + i, columns - i);
  }
  const float at_target = spread + (1 - smoothing) * scale / 2;
  StoreF32(gradient_at(one, target, 1, at_target), one, gradient + target);
}

LossSums RDropCrossEntropy(const std::array<Tensor, 2>& logits, std::span<const int32_t> targets,
                           float smoothing, float alpha, float scale,
                           const std::array<Tensor, 2>& d_logits) {
  LossSums result;
  const int64_t columns = logits[0].columns();
  thread_local std::vector<float> differences;
  differences.resize(static_cast<std::size_t>(columns));
  for (int64_t r = 0; r < logits[0].rows(); ++r) {
    const int64_t target = targets[static_cast<std::size_t>(r)];
    RowPair pair{};
    pair.difference = differences.data();
    float scores[2];
    for (std::size_t own = 0; own < 2; ++own) {
      pair.row[own] = logits[own].data<float>() + r * logits[own].row_stride();
      scores[own] = pair.row[own][target];
      MaxAndSum(pair.row[own], columns, pair.sums[own]);
    }
    SumExpOfPair(columns, pair);
    result.correct += AddRow(pair.sums[0], scores[0], columns, smoothing, 0.5, result) ? 1 : 0;
    AddRow(pair.sums[1], scores[1], columns, smoothing, 0.5, result);
    result.divergence +=
        (static_cast<double>(pair.mean[0]) - static_cast<double>(pair.mean[1])) / 2;
    ++result.tokens;
    for (int own = 0; own < 2; ++own) {
      const Tensor& d = d_logits[static_cast<std::size_t>(own)];
      if (!d.defined()) continue;
      WithGradientRow(d, r, [&](auto* gradient) {
        StorePairGradient(pair, own, columns, target, smoothing, alpha, scale, gradient);
      });
    }
  }
  return result;
}

}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend {

HWY_EXPORT(CrossEntropy);
HWY_EXPORT(RDropCrossEntropy);

LossSums& LossSums::operator+=(const LossSums& other) {
  loss += other.loss;
  nll += other.nll;
  divergence += other.divergence;
  tokens += other.tokens;
  correct += other.correct;
  return *this;
}

LossSums cross_entropy(const Tensor& logits, std::span<const int32_t> targets, float smoothing,
                       float scale, const Tensor& d_logits) {
  return HWY_DYNAMIC_DISPATCH(CrossEntropy)(logits, targets, smoothing, scale, d_logits);
}

LossSums r_drop_cross_entropy(const std::array<Tensor, 2>& logits, std::span<const int32_t> targets,
                              float smoothing, float alpha, float scale,
                              const std::array<Tensor, 2>& d_logits) {
  return HWY_DYNAMIC_DISPATCH(RDropCrossEntropy)(logits, targets, smoothing, alpha, scale,
                                                 d_logits);
}

}  // namespace attend
#endif  // HWY_ONCE
