#include "attend/kernels/adam.h"

#include <algorithm>
#include <cmath>

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/adam.cc"
#include "attend/kernels/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include "attend/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

/// The step's constants as float, worked out in double.
struct Constants {
  float gradient_scale, beta1, beta2, rate, root_correction, epsilon, shrink, decay, ema;
};

Constants ConstantsOf(const AdamStep& op) {
  const double step = static_cast<double>(op.step);
  const double correction1 = 1 - std::pow(op.beta1, step);
  const double correction2 = 1 - std::pow(op.beta2, step);
  return {static_cast<float>(op.gradient_scale),
          static_cast<float>(op.beta1),
          static_cast<float>(op.beta2),
          static_cast<float>(op.learning_rate / correction1),
          static_cast<float>(1 / std::sqrt(correction2)),
          static_cast<float>(op.epsilon),
          static_cast<float>(op.decoupled ? 1 - op.learning_rate * op.weight_decay : 1),
          static_cast<float>(op.decoupled ? 0 : op.weight_decay),
          static_cast<float>(op.ema_decay)};
}

inline void StepVector(const AdamStep& op, const Constants& c, int64_t i, int64_t rest) {
  const FloatTag d;
  float* weights = op.weights.data<float>() + i;
  float* gradient = op.gradient.data<float>() + i;
  float* first = op.first_moment.data<float>() + i;
  float* second = op.second_moment.data<float>() + i;
  auto w = LoadSome(d, weights, rest);
  auto g = hn::Mul(LoadSome(d, gradient, rest), hn::Set(d, c.gradient_scale));
  g = hn::MulAdd(w, hn::Set(d, c.decay), g);
  const auto m = hn::MulAdd(hn::Set(d, c.beta1), LoadSome(d, first, rest),
                            hn::Mul(hn::Set(d, 1 - c.beta1), g));
  const auto v = hn::MulAdd(hn::Set(d, c.beta2), LoadSome(d, second, rest),
                            hn::Mul(hn::Set(d, 1 - c.beta2), hn::Mul(g, g)));
  const auto root = hn::MulAdd(hn::Sqrt(v), hn::Set(d, c.root_correction), hn::Set(d, c.epsilon));
  w = hn::Mul(w, hn::Set(d, c.shrink));
  w = hn::NegMulAdd(hn::Set(d, c.rate), hn::Div(m, root), w);
  StoreSome(w, d, weights, rest);
  StoreSome(m, d, first, rest);
  StoreSome(v, d, second, rest);
  StoreSome(hn::Zero(d), d, gradient, rest);
  if (op.compute_copy.defined()) StoreSome(w, d, op.compute_copy.data<BFloat16>() + i, rest);
  if (op.average.defined()) {
    float* average = op.average.data<float>() + i;
    const auto old = LoadSome(d, average, rest);
    StoreSome(hn::MulAdd(hn::Set(d, 1 - c.ema), hn::Sub(w, old), old), d, average, rest);
  }
}

void Step(const AdamStep& op, int64_t begin, int64_t end) {
  const Constants constants = ConstantsOf(op);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(FloatTag()));
  for (int64_t i = begin; i < end; i += lanes) StepVector(op, constants, i, end - i);
}

double SumOfSquares(const Tensor& flat, int64_t begin, int64_t end) {
  const FloatTag d;
  constexpr int64_t kBlock = 4096;  // summed in float, the blocks in double
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  double total = 0;
  for (int64_t block = begin; block < end; block += kBlock) {
    const int64_t stop = std::min(end, block + kBlock);
    auto sum = hn::Zero(d);
    for (int64_t i = block; i < stop; i += lanes) {
      const auto x = LoadSome(d, flat.data<float>() + i, stop - i);
      sum = hn::MulAdd(x, x, sum);
    }
    total += static_cast<double>(SumLanes(d, sum));
  }
  return total;
}

}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend {

HWY_EXPORT(Step);
HWY_EXPORT(SumOfSquares);

void adam_step(const AdamStep& op, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(Step)(op, begin, end);
}
double sum_of_squares(const Tensor& flat, int64_t begin, int64_t end) {
  return HWY_DYNAMIC_DISPATCH(SumOfSquares)(flat, begin, end);
}

}  // namespace attend
#endif  // HWY_ONCE
