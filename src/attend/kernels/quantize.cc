#include "attend/kernels/quantize.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/quantize.cc"
#include "attend/kernels/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include "attend/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

constexpr float kLargest = 127;

/// max |x| of a row; NaN where a number is not finite.
template <typename T>
HWY_INLINE float Magnitude(const T* row, int64_t columns) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto most = hn::Zero(d), not_finite = hn::Zero(d);
  const auto add = [&](FloatVector x) HWY_ATTR {
    most = hn::Max(most, hn::Abs(x));
    not_finite = hn::Add(not_finite, hn::Sub(x, x));  // NaN for infinities as well
  };
  int64_t i = 0;
  for (; i + lanes <= columns; i += lanes) add(LoadF32(d, row + i));
  if (i < columns) add(LoadSome(d, row + i, columns - i));
  return hn::GetLane(hn::MaxOfLanes(d, most)) + SumLanes(d, not_finite);
}

template <typename T>
void QuantizeRow(const T* row, int64_t columns, int8_t* values, float& scale) {
  const FloatTag d;
  const hn::Rebind<int8_t, FloatTag> d8;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const float magnitude = Magnitude(row, columns);
  scale = magnitude / kLargest;
  const auto inverse = hn::Set(d, magnitude > 0 ? kLargest / magnitude : 0.0F);
  const auto quantized = [&](FloatVector x) HWY_ATTR {
    return hn::DemoteTo(d8, hn::NearestInt(hn::Mul(x, inverse)));
  };
  int64_t i = 0;
  for (; i + lanes <= columns; i += lanes) {
    hn::StoreU(quantized(LoadF32(d, row + i)), d8, values + i);
  }
  if (i < columns) {
    HWY_ALIGN int8_t rest[hn::MaxLanes(FloatTag())];
    hn::StoreU(quantized(LoadSome(d, row + i, columns - i)), d8, rest);
    std::memcpy(values + i, rest, static_cast<std::size_t>(columns - i));
  }
}

void QuantizeRows(const Tensor& x, int8_t* values, float* scales) {
  const int64_t columns = x.columns();
  for (int64_t row = 0; row < x.rows(); ++row) {
    int8_t* to = values + row * columns;
    if (x.dtype() == DType::kFloat32) {
      QuantizeRow(x.data<float>() + row * x.row_stride(), columns, to, scales[row]);
    } else {
      QuantizeRow(x.data<BFloat16>() + row * x.row_stride(), columns, to, scales[row]);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "attend/base/error.h"

namespace attend {

HWY_EXPORT(QuantizeRows);

void quantize_rows(const Tensor& x, int8_t* values, float* scales) {
  if (x.dtype() == DType::kInt8) fail("quantize: the numbers are int8 already");
  HWY_DYNAMIC_DISPATCH(QuantizeRows)(x, values, scales);
}

QuantizedMatrix quantize(const Tensor& x) {
  QuantizedMatrix made{Tensor({x.rows(), x.columns()}, DType::kInt8),
                       Tensor({x.rows()}, DType::kFloat32)};
  quantize_rows(x, made.values.data<int8_t>(), made.scales.data<float>());
  return made;
}

Tensor dequantize(const QuantizedMatrix& matrix) {
  const Tensor made({matrix.values.rows(), matrix.values.columns()}, DType::kFloat32);
  const int8_t* from = matrix.values.data<int8_t>();
  float* to = made.data<float>();
  for (int64_t row = 0; row < made.rows(); ++row) {
    const float scale = matrix.scales.data<float>()[row];
    for (int64_t column = 0; column < made.columns(); ++column) {
      *to++ = static_cast<float>(*from++) * scale;
    }
  }
  return made;
}

}  // namespace attend
#endif  // HWY_ONCE
