#include "attend/kernels/activation.h"

#include <vector>

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/activation.cc"
#include "attend/kernels/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include "attend/kernels/dropout-inl.h"
#include "attend/kernels/math-inl.h"
#include "attend/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

struct Relu {
  /// In this order x86 keeps NaN: its maximum gives the second operand where one is NaN.
  static FloatVector Value(FloatVector x) { return hn::Max(hn::Zero(FloatTag()), x); }
  /// From the output: where that is 0, whether by the activation or by dropout, nothing flows.
  static FloatVector Slope(FloatVector out) {
    const FloatTag d;
    return hn::IfThenElseZero(hn::Gt(out, hn::Zero(d)), hn::Set(d, 1.0F));
  }
};

struct Gelu {
  static FloatVector Value(FloatVector x) { return hn::Mul(x, NormalCdf(x)); }
  static FloatVector Slope(FloatVector x) {
    const FloatTag d;
    const auto half_square = hn::Mul(hn::Mul(x, x), hn::Set(d, -0.5F));
    const auto density = hn::Mul(Exp(half_square), hn::Set(d, 0.3989422804F));
    return hn::MulAdd(x, density, NormalCdf(x));
  }
};

struct Silu {
  static FloatVector Value(FloatVector x) { return hn::Mul(x, Sigmoid(x)); }
  static FloatVector Slope(FloatVector x) {
    const FloatTag d;
    const auto sigmoid = Sigmoid(x);
    const auto one = hn::Set(d, 1.0F);
    return hn::Mul(sigmoid, hn::MulAdd(x, hn::Sub(one, sigmoid), one));
  }
};

template <typename T, class F>
void ForwardAs(const Dropout& dropout, const Tensor& x, const Tensor& out) {
  const FloatTag d;
  const int64_t columns = x.columns(), lanes = static_cast<int64_t>(hn::Lanes(d));
  thread_local std::vector<float> factors;
  factors.resize(static_cast<std::size_t>(DropoutBufferSize(columns)));
  for (int64_t row = 0; row < x.rows(); ++row) {
    const T* from = x.data<T>() + row * x.row_stride();
    T* to = out.data<T>() + row * out.row_stride();
    if (dropout.active()) DropoutRow(dropout, row, columns, factors.data());
    for (int64_t i = 0; i < columns; i += lanes) {
      auto value = F::Value(LoadSome(d, from + i, columns - i));
      if (dropout.active()) value = hn::Mul(value, hn::LoadU(d, factors.data() + i));
      StoreSome(value, d, to + i, columns - i);
    }
  }
}

template <typename T, class F>
void BackwardAs(const Dropout& dropout, const Tensor& saved, const Tensor& gradient) {
  const FloatTag d;
  const int64_t columns = saved.columns(), lanes = static_cast<int64_t>(hn::Lanes(d));
  thread_local std::vector<float> factors;
  factors.resize(static_cast<std::size_t>(DropoutBufferSize(columns)));
  for (int64_t row = 0; row < saved.rows(); ++row) {
    const T* kept = saved.data<T>() + row * saved.row_stride();
    T* g = gradient.data<T>() + row * gradient.row_stride();
    if (dropout.active()) DropoutRow(dropout, row, columns, factors.data());
    for (int64_t i = 0; i < columns; i += lanes) {
      const int64_t rest = columns - i;
      auto value = hn::Mul(LoadSome(d, g + i, rest), F::Slope(LoadSome(d, kept + i, rest)));
      if (dropout.active()) value = hn::Mul(value, hn::LoadU(d, factors.data() + i));
      StoreSome(value, d, g + i, rest);
    }
  }
}

template <template <typename, class> class Run, typename... Args>
void Dispatch(ActivationKind kind, DType dtype, const Args&... args) {
  const bool wide = dtype == DType::kFloat32;
  switch (kind) {
    case ActivationKind::kRelu:
      wide ? Run<float, Relu>::Do(args...) : Run<BFloat16, Relu>::Do(args...);
      break;
    case ActivationKind::kGelu:
      wide ? Run<float, Gelu>::Do(args...) : Run<BFloat16, Gelu>::Do(args...);
      break;
    case ActivationKind::kSilu:
      wide ? Run<float, Silu>::Do(args...) : Run<BFloat16, Silu>::Do(args...);
      break;
  }
}
template <typename T, class F>
struct RunForward {
  static void Do(const Dropout& p, const Tensor& x, const Tensor& out) {
    ForwardAs<T, F>(p, x, out);
  }
};
template <typename T, class F>
struct RunBackward {
  static void Do(const Dropout& p, const Tensor& saved, const Tensor& gradient) {
    BackwardAs<T, F>(p, saved, gradient);
  }
};

void Forward(ActivationKind kind, const Dropout& dropout, const Tensor& x, const Tensor& out) {
  Dispatch<RunForward>(kind, x.dtype(), dropout, x, out);
}

void Backward(ActivationKind kind, const Dropout& dropout, const Tensor& saved,
              const Tensor& gradient) {
  Dispatch<RunBackward>(kind, saved.dtype(), dropout, saved, gradient);
}

template <typename T>
void ColumnSumsAs(const Tensor& x, const Tensor& sums) {
  const FloatTag d;
  const int64_t columns = x.columns(), lanes = static_cast<int64_t>(hn::Lanes(d));
  // A block of columns that stays in registers and the first-level cache goes down all the rows.
  for (int64_t i = 0; i < columns; i += lanes) {
    const int64_t rest = columns - i;
    auto sum0 = hn::Zero(d), sum1 = hn::Zero(d), sum2 = hn::Zero(d), sum3 = hn::Zero(d);
    const T* from = x.data<T>() + i;
    int64_t row = 0;
    for (; row + 4 <= x.rows(); row += 4) {
      sum0 = hn::Add(sum0, LoadSome(d, from + row * x.row_stride(), rest));
      sum1 = hn::Add(sum1, LoadSome(d, from + (row + 1) * x.row_stride(), rest));
      sum2 = hn::Add(sum2, LoadSome(d, from + (row + 2) * x.row_stride(), rest));
      sum3 = hn::Add(sum3, LoadSome(d, from + (row + 3) * x.row_stride(), rest));
    }
    for (; row < x.rows(); ++row) {
      sum0 = hn::Add(sum0, LoadSome(d, from + row * x.row_stride(), rest));
    }
    const auto sum = hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3));
    float* to = sums.data<float>() + i;
    StoreSome(hn::Add(LoadSome(d, to, rest), sum), d, to, rest);
  }
}

void ColumnSums(const Tensor& x, const Tensor& sums) {
  x.dtype() == DType::kFloat32 ? ColumnSumsAs<float>(x, sums) : ColumnSumsAs<BFloat16>(x, sums);
}

template <typename From, typename To>
void ConvertAs(const Tensor& from, const Tensor& to, bool accumulate) {
  const FloatTag d;
  const int64_t columns = from.columns();
  for (int64_t row = 0; row < from.rows(); ++row) {
    const From* x = from.data<From>() + row * from.row_stride();
    To* out = to.data<To>() + row * to.row_stride();
    for (int64_t i = 0; i < columns; i += static_cast<int64_t>(hn::Lanes(d))) {
      auto value = LoadSome(d, x + i, columns - i);
      if (accumulate) value = hn::Add(value, LoadSome(d, out + i, columns - i));
      StoreSome(value, d, out + i, columns - i);
    }
  }
}

void Convert(const Tensor& from, const Tensor& to, bool accumulate) {
  const bool wide_from = from.dtype() == DType::kFloat32, wide_to = to.dtype() == DType::kFloat32;
  if (wide_from) {
    wide_to ? ConvertAs<float, float>(from, to, accumulate)
            : ConvertAs<float, BFloat16>(from, to, accumulate);
  } else {
    wide_to ? ConvertAs<BFloat16, float>(from, to, accumulate)
            : ConvertAs<BFloat16, BFloat16>(from, to, accumulate);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend {

HWY_EXPORT(Forward);
HWY_EXPORT(Backward);
HWY_EXPORT(ColumnSums);
HWY_EXPORT(Convert);

void activation_forward(ActivationKind kind, const Dropout& dropout, const Tensor& x,
                        const Tensor& out) {
  HWY_DYNAMIC_DISPATCH(Forward)(kind, dropout, x, out);
}
void activation_backward(ActivationKind kind, const Dropout& dropout, const Tensor& saved,
                         const Tensor& gradient) {
  HWY_DYNAMIC_DISPATCH(Backward)(kind, dropout, saved, gradient);
}
void add_column_sums(const Tensor& x, const Tensor& sums) {
  HWY_DYNAMIC_DISPATCH(ColumnSums)(x, sums);
}
void convert(const Tensor& from, const Tensor& to, bool accumulate) {
  HWY_DYNAMIC_DISPATCH(Convert)(from, to, accumulate);
}

}  // namespace attend
#endif  // HWY_ONCE
