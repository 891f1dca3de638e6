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
  const auto dropped = [&](FloatVector added, int64_t i) HWY_ATTR {
    return factors == nullptr ? added : hn::Mul(added, hn::LoadU(d, factors + i));
  };
  int64_t i = 0;
  for (; i + lanes <= columns; i += lanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, x + i), dropped(LoadF32(d, y + i), i)), d, sum + i);
  }
  if (i == columns) return;
  const auto added = dropped(LoadSome(d, y + i, columns - i), i);
  StoreSome(hn::Add(LoadSome(d, x + i, columns - i), added), d, sum + i, columns - i);
}

/// Mean and reciprocal standard deviation of a row, in two passes: exact for huge offsets too.
inline void RowStatistics(const float* row, int64_t columns, float* statistics) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), whole = columns / lanes * lanes;
  const auto rest = hn::FirstN(d, static_cast<std::size_t>(columns - whole));
  auto total = hn::Zero(d);
  for (int64_t i = 0; i < whole; i += lanes) total = hn::Add(total, hn::LoadU(d, row + i));
  if (whole < columns) total = hn::Add(total, LoadSome(d, row + whole, columns - whole));
  const float mean = SumLanes(d, total) / static_cast<float>(columns);
  auto squares = hn::Zero(d);
  const auto center = hn::Set(d, mean);
  for (int64_t i = 0; i < whole; i += lanes) {
    const auto off = hn::Sub(hn::LoadU(d, row + i), center);
    squares = hn::MulAdd(off, off, squares);
  }
  if (whole < columns) {
    const auto off = hn::Sub(LoadSome(d, row + whole, columns - whole), center);
    squares = hn::MulAdd(off, hn::IfThenElseZero(rest, off), squares);
  }
  statistics[0] = mean;
  statistics[1] =
      1.0F / std::sqrt(SumLanes(d, squares) / static_cast<float>(columns) + kNormEpsilon);
}

template <typename T>
void Normalize(const ResidualNormForward& op, const float* statistics, const float* sum, T* out) {
  const FloatTag d;
  const int64_t columns = op.x.columns(), lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto mean = hn::Set(d, statistics[0]), inverse = hn::Set(d, statistics[1]);
  const float *gain = op.gain.data<float>(), *bias = op.bias.data<float>();
  int64_t i = 0;
  for (; i + lanes <= columns; i += lanes) {
    const auto normal = hn::Mul(hn::Sub(hn::LoadU(d, sum + i), mean), inverse);
    StoreF32(hn::MulAdd(normal, hn::LoadU(d, gain + i), hn::LoadU(d, bias + i)), d, out + i);
  }
  if (i == columns) return;
  const int64_t rest = columns - i;
  const auto normal = hn::Mul(hn::Sub(LoadSome(d, sum + i, rest), mean), inverse);
  StoreSome(hn::MulAdd(normal, LoadSome(d, gain + i, rest), LoadSome(d, bias + i, rest)), d,
            out + i, rest);
}

/// A row's sum with its sublayer's output; `kept` is where it goes.
inline const float* SumRow(const ResidualNormForward& op, int64_t row, float* factors,
                           float* kept) {
  if (!op.y.defined()) return op.x.data<float>() + row * op.x.row_stride();
  const int64_t columns = op.x.columns();
  if (op.sum.defined()) kept = op.sum.data<float>() + row * columns;
  if (op.dropout.active()) DropoutRow(op.dropout, row, columns, factors);
  const float* mask = op.dropout.active() ? factors : nullptr;
  if (op.y.dtype() == DType::kFloat32) {
    AddSublayer<float>(op, row, mask, kept);
  } else {
    AddSublayer<BFloat16>(op, row, mask, kept);
  }
  return kept;
}

inline void NormalizeTo(const ResidualNormForward& op, int64_t row, const float* sum) {
  const float* statistics = op.statistics.data<float>() + row * 2;
  const auto to = [&](const Tensor& out) {
    const int64_t at = row * op.x.columns();
    if (!out.defined()) return;
    if (out.dtype() == DType::kFloat32)
      return Normalize(op, statistics, sum, out.data<float>() + at);
    Normalize(op, statistics, sum, out.data<BFloat16>() + at);
  };
  to(op.out);
  to(op.out_compute);
}

/// A few rows at a time: a row's statistics take long to wait for.
void Forward(const ResidualNormForward& op) {
  constexpr int64_t kTogether = 8;
  const int64_t columns = op.x.columns();
  thread_local std::vector<float> factors, scratch;
  factors.resize(static_cast<std::size_t>(DropoutBufferSize(columns)));
  scratch.resize(static_cast<std::size_t>(kTogether * columns));
  for (int64_t first = 0; first < op.x.rows(); first += kTogether) {
    const int64_t rows = std::min(kTogether, op.x.rows() - first);
    const float* sums[kTogether];
    for (int64_t i = 0; i < rows; ++i) {
      sums[i] = SumRow(op, first + i, factors.data(), scratch.data() + i * columns);
    }
    if (!op.gain.defined()) continue;
    for (int64_t i = 0; i < rows; ++i) {
      RowStatistics(sums[i], columns, op.statistics.data<float>() + (first + i) * 2);
    }
    for (int64_t i = 0; i < rows; ++i) NormalizeTo(op, first + i, sums[i]);
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
