#include "attend/kernels/norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/norm.cc"
#include "attend/kernels/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include "attend/kernels/dropout-inl.h"
#include "attend/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

template <typename T>
void AddSublayer(const ResidualNormForward& op, int64_t row, const float* factors, float* sum) {
  const FloatTag d;
  const int64_t columns = op.x.columns(), lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* x = op.x.data<float>() + row * op.x.row_stride();
  const T* y = op.y.data<T>() + row * op.y.row_stride();
  for (int64_t i = 0; i < columns; i += lanes) {
    auto added = LoadSome(d, y + i, columns - i);
    if (factors != nullptr) added = hn::Mul(added, hn::LoadU(d, factors + i));
    StoreSome(hn::Add(LoadSome(d, x + i, columns - i), added), d, sum + i, columns - i);
  }
}

/// Mean and reciprocal standard deviation of a row, in two passes: exact for huge offsets too.
inline void RowStatistics(const float* row, int64_t columns, float& mean, float& inverse) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto total = hn::Zero(d);
  for (int64_t i = 0; i < columns; i += lanes) {
    total = hn::Add(total, LoadSome(d, row + i, columns - i));
  }
  mean = SumLanes(d, total) / static_cast<float>(columns);
  auto squares = hn::Zero(d);
  const auto center = hn::Set(d, mean);
  for (int64_t i = 0; i < columns; i += lanes) {
    auto off = hn::Sub(LoadSome(d, row + i, columns - i), center);
    if (columns - i < lanes) {
      off = hn::IfThenElseZero(hn::FirstN(d, static_cast<std::size_t>(columns - i)), off);
    }
    squares = hn::MulAdd(off, off, squares);
  }
  inverse = 1.0F / std::sqrt(SumLanes(d, squares) / static_cast<float>(columns) + kNormEpsilon);
}

inline void Normalize(const ResidualNormForward& op, int64_t row, const float* sum) {
  const FloatTag d;
  const int64_t columns = op.x.columns(), lanes = static_cast<int64_t>(hn::Lanes(d));
  float* statistics = op.statistics.data<float>() + row * 2;
  RowStatistics(sum, columns, statistics[0], statistics[1]);
  const auto mean = hn::Set(d, statistics[0]), inverse = hn::Set(d, statistics[1]);
  const float *gain = op.gain.data<float>(), *bias = op.bias.data<float>();
  for (int64_t i = 0; i < columns; i += lanes) {
    const int64_t rest = columns - i;
    const auto normal = hn::Mul(hn::Sub(LoadSome(d, sum + i, rest), mean), inverse);
    const auto out = hn::MulAdd(normal, LoadSome(d, gain + i, rest), LoadSome(d, bias + i, rest));
    if (op.out.defined()) StoreSome(out, d, op.out.data<float>() + row * columns + i, rest);
    if (!op.out_compute.defined()) continue;
    if (op.out_compute.dtype() == DType::kFloat32) {
      StoreSome(out, d, op.out_compute.data<float>() + row * columns + i, rest);
    } else {
      StoreSome(out, d, op.out_compute.data<BFloat16>() + row * columns + i, rest);
    }
  }
}

void Forward(const ResidualNormForward& op) {
  const int64_t columns = op.x.columns();
  thread_local std::vector<float> factors, scratch;
  factors.resize(static_cast<std::size_t>(DropoutBufferSize(columns)));
  scratch.resize(static_cast<std::size_t>(columns));
  for (int64_t row = 0; row < op.x.rows(); ++row) {
    const float* sum = op.x.data<float>() + row * op.x.row_stride();
    if (op.y.defined()) {
      float* kept = op.sum.defined() ? op.sum.data<float>() + row * columns : scratch.data();
      if (op.dropout.active()) DropoutRow(op.dropout, row, columns, factors.data());
      const float* mask = op.dropout.active() ? factors.data() : nullptr;
      if (op.y.dtype() == DType::kFloat32) {
        AddSublayer<float>(op, row, mask, kept);
      } else {
        AddSublayer<BFloat16>(op, row, mask, kept);
      }
      sum = kept;
    }
    if (op.gain.defined()) Normalize(op, row, sum);
  }
}

/// d_total of one row: what reaches the sum, through the norm and directly.
inline void NormGradient(const ResidualNormBackward& op, int64_t row, float* d_normed,
                         float* d_total) {
  const FloatTag d;
  const int64_t columns = op.dx.columns(), lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* sum = op.sum.data<float>() + row * op.sum.row_stride();
  const float* statistics = op.statistics.data<float>() + row * 2;
  const auto mean = hn::Set(d, statistics[0]), inverse = hn::Set(d, statistics[1]);
  const float* first = op.d_out1.defined() ? op.d_out1.data<float>() + row * columns : nullptr;
  const float* second = op.d_out2.defined() ? op.d_out2.data<float>() + row * columns : nullptr;
  const float* gain = op.gain.data<float>();
  float *d_gain = op.d_gain.data<float>(), *d_bias = op.d_bias.data<float>();
  auto total = hn::Zero(d), projected = hn::Zero(d);
  for (int64_t i = 0; i < columns; i += lanes) {
    const int64_t rest = columns - i;
    auto d_out = first != nullptr ? LoadSome(d, first + i, rest) : hn::Zero(d);
    if (second != nullptr) d_out = hn::Add(d_out, LoadSome(d, second + i, rest));
    const auto normal = hn::Mul(hn::Sub(LoadSome(d, sum + i, rest), mean), inverse);
    StoreSome(hn::MulAdd(d_out, normal, LoadSome(d, d_gain + i, rest)), d, d_gain + i, rest);
    StoreSome(hn::Add(d_out, LoadSome(d, d_bias + i, rest)), d, d_bias + i, rest);
    const auto scaled = hn::Mul(d_out, LoadSome(d, gain + i, rest));  // 0 past the end
    StoreSome(scaled, d, d_normed + i, rest);
    total = hn::Add(total, scaled);
    projected = hn::MulAdd(scaled, normal, projected);
  }
  const float count = static_cast<float>(columns);
  const auto average = hn::Set(d, SumLanes(d, total) / count);
  const auto slope = hn::Set(d, SumLanes(d, projected) / count);
  for (int64_t i = 0; i < columns; i += lanes) {
    const int64_t rest = columns - i;
    const auto normal = hn::Mul(hn::Sub(LoadSome(d, sum + i, rest), mean), inverse);
    const auto centered = hn::Sub(LoadSome(d, d_normed + i, rest), average);
    StoreSome(hn::Mul(inverse, hn::NegMulAdd(normal, slope, centered)), d, d_total + i, rest);
  }
}

template <typename T>
void StoreSublayerGradient(const float* d_total, const float* factors, int64_t columns, T* dy) {
  const FloatTag d;
  for (int64_t i = 0; i < columns; i += static_cast<int64_t>(hn::Lanes(d))) {
    auto gradient = LoadSome(d, d_total + i, columns - i);
    if (factors != nullptr) gradient = hn::Mul(gradient, hn::LoadU(d, factors + i));
    StoreSome(gradient, d, dy + i, columns - i);
  }
}

/// d_total += more, a row.
inline void AddRow(const float* more, int64_t columns, float* to) {
  const FloatTag d;
  for (int64_t i = 0; i < columns; i += static_cast<int64_t>(hn::Lanes(d))) {
    const int64_t rest = columns - i;
    StoreSome(hn::Add(LoadSome(d, to + i, rest), LoadSome(d, more + i, rest)), d, to + i, rest);
  }
}

void Backward(const ResidualNormBackward& op) {
  const int64_t columns = op.dx.columns();
  thread_local std::vector<float> factors, d_normed, d_total;
  factors.resize(static_cast<std::size_t>(DropoutBufferSize(columns)));
  d_normed.resize(static_cast<std::size_t>(columns));
  d_total.resize(static_cast<std::size_t>(columns));
  if (op.d_gain.defined()) {
    op.d_gain.zero();
    op.d_bias.zero();
  }
  for (int64_t row = 0; row < op.dx.rows(); ++row) {
    if (op.gain.defined()) {
      NormGradient(op, row, d_normed.data(), d_total.data());
    } else {
      std::fill(d_total.begin(), d_total.end(), 0.0F);
    }
    if (op.d_sum.defined()) {
      AddRow(op.d_sum.data<float>() + row * columns, columns, d_total.data());
    }
    if (op.dy.defined()) {
      if (op.dropout.active()) DropoutRow(op.dropout, row, columns, factors.data());
      const float* mask = op.dropout.active() ? factors.data() : nullptr;
      if (op.dy.dtype() == DType::kFloat32) {
        StoreSublayerGradient(d_total.data(), mask, columns, op.dy.data<float>() + row * columns);
      } else {
        StoreSublayerGradient(d_total.data(), mask, columns,
                              op.dy.data<BFloat16>() + row * columns);
      }
    }
    float* dx = op.dx.data<float>() + row * columns;
    if (op.accumulate_dx) {
      AddRow(d_total.data(), columns, dx);
    } else {
      std::copy_n(d_total.data(), columns, dx);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend {

HWY_EXPORT(Forward);
HWY_EXPORT(Backward);

void residual_norm_forward(const ResidualNormForward& op) { HWY_DYNAMIC_DISPATCH(Forward)(op); }
void residual_norm_backward(const ResidualNormBackward& op) { HWY_DYNAMIC_DISPATCH(Backward)(op); }

}  // namespace attend
#endif  // HWY_ONCE
