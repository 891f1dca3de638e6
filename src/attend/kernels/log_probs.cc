#include "attend/kernels/log_probs.h"

#include <cmath>

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/log_probs.cc"
#include "attend/kernels/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include <hwy/contrib/math/math-inl.h>

#include "attend/kernels/math-inl.h"
#include "attend/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {
namespace {

/// log Σ exp of a row; no number where one of the row's is none.
float LogSum(const float* row, int64_t columns) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto each = [&](auto use) HWY_ATTR {
    for (int64_t i = 0; i < columns; i += lanes) {
      auto part = LoadSome(d, row + i, columns - i);
      if (columns - i < lanes) {
        const auto inside = hn::FirstN(d, static_cast<std::size_t>(columns - i));
        part = hn::IfThenElse(inside, part, hn::Set(d, -INFINITY));
      }
      use(part);
    }
  };
  auto greatest = hn::Set(d, -INFINITY);
  each([&](FloatVector part) HWY_ATTR { greatest = hn::Max(greatest, part); });
  const float most = hn::GetLane(hn::MaxOfLanes(d, greatest));
  auto sum = hn::Zero(d);
  each([&](FloatVector part)
           HWY_ATTR { sum = hn::Add(sum, Exp(hn::Sub(part, hn::Set(d, most)))); });
  return most + std::log(SumLanes(d, sum));
}

void Subtract(float* row, int64_t columns, float value) {
  const FloatTag d;
  for (int64_t i = 0; i < columns; i += static_cast<int64_t>(hn::Lanes(d))) {
    StoreSome(hn::Sub(LoadSome(d, row + i, columns - i), hn::Set(d, value)), d, row + i,
              columns - i);
  }
}

/// to = log(e^to + e^from): max + log(1 + e^-|difference|), which loses nothing to underflow.
void AddProbabilities(const float* from, int64_t columns, float* to) {
  const FloatTag d;
  for (int64_t i = 0; i < columns; i += static_cast<int64_t>(hn::Lanes(d))) {
    const auto a = LoadSome(d, to + i, columns - i), b = LoadSome(d, from + i, columns - i);
    const auto smaller = Exp(hn::Neg(hn::AbsDiff(a, b)));
    StoreSome(hn::Add(hn::Max(a, b), hn::Log1p(d, smaller)), d, to + i, columns - i);
  }
}

void MeanLogProbs(std::span<const Tensor> logits) {
  const Tensor& out = logits.front();
  const int64_t columns = out.columns();
  for (int64_t row = 0; row < out.rows(); ++row) {
    float* to = out.data<float>() + row * out.row_stride();
    for (const Tensor& each : logits) {
      float* scores = each.data<float>() + row * each.row_stride();
      Subtract(scores, columns, LogSum(scores, columns));
      if (scores != to) AddProbabilities(scores, columns, to);
    }
    if (logits.size() > 1) {
      Subtract(to, columns, std::log(static_cast<float>(logits.size())));
    }
  }
}

void Mean(std::span<const Tensor> tensors) {
  const FloatTag d;
  const Tensor& out = tensors.front();
  const auto part = hn::Set(d, 1.0F / static_cast<float>(tensors.size()));
  for (int64_t row = 0; row < out.rows(); ++row) {
    float* to = out.data<float>() + row * out.row_stride();
    for (int64_t i = 0; i < out.columns(); i += static_cast<int64_t>(hn::Lanes(d))) {
      auto sum = hn::Zero(d);
      for (const Tensor& each : tensors) {
        const float* from = each.data<float>() + row * each.row_stride();
        sum = hn::Add(sum, LoadSome(d, from + i, out.columns() - i));
      }
      StoreSome(hn::Mul(sum, part), d, to + i, out.columns() - i);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "attend/base/error.h"

namespace attend {

HWY_EXPORT(MeanLogProbs);
HWY_EXPORT(Mean);

namespace {

void check_alike(const char* what, std::span<const Tensor> tensors) {
  for (const Tensor& each : tensors) {
    if (each.dtype() != DType::kFloat32 || each.shape() != tensors.front().shape()) {
      fail("{}: {} {} beside {}", what, name_of(each.dtype()), to_string(each.shape()),
           to_string(tensors.front().shape()));
    }
  }
}

}  // namespace

void mean_log_probs(std::span<const Tensor> logits) {
  check_alike("mean_log_probs", logits);
  HWY_DYNAMIC_DISPATCH(MeanLogProbs)(logits);
}

void mean_of(std::span<const Tensor> tensors) {
  check_alike("mean_of", tensors);
  HWY_DYNAMIC_DISPATCH(Mean)(tensors);
}

}  // namespace attend
#endif  // HWY_ONCE
