#include "attend/kernels/softmax.h"

#include <algorithm>
#include <cmath>

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
    const double log_sum = static_cast<double>(sums.max) + std::log(sums.sum_exp);
    const double nll = log_sum - static_cast<double>(score);
    const double uniform = log_sum - static_cast<double>(sums.sum) / static_cast<double>(columns);
    result.nll += nll;
    result.loss +=
        (1 - static_cast<double>(smoothing)) * nll + static_cast<double>(smoothing) * uniform;
    result.correct += score == sums.max ? 1 : 0;
    ++result.tokens;
    if (!d_logits.defined()) continue;
    const int64_t at = r * d_logits.row_stride();
    if (d_logits.dtype() == DType::kFloat32) {
      StoreGradient(row, columns, target, 1 / sums.sum_exp, smoothing, scale,
                    d_logits.data<float>() + at);
    } else {
      StoreGradient(row, columns, target, 1 / sums.sum_exp, smoothing, scale,
                    d_logits.data<BFloat16>() + at);
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

LossSums& LossSums::operator+=(const LossSums& other) {
  loss += other.loss;
  nll += other.nll;
  tokens += other.tokens;
  correct += other.correct;
  return *this;
}

LossSums cross_entropy(const Tensor& logits, std::span<const int32_t> targets, float smoothing,
                       float scale, const Tensor& d_logits) {
  return HWY_DYNAMIC_DISPATCH(CrossEntropy)(logits, targets, smoothing, scale, d_logits);
}

}  // namespace attend
#endif  // HWY_ONCE
