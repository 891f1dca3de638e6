#include "attend/kernels/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

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
constexpr float kLargestByte = 255;

/// The least and the greatest number of a row and 0; NaN where a number is not finite.
struct Range {
  float least, most;
};

template <typename T>
HWY_INLINE Range RangeOf(const T* row, int64_t columns) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto most = hn::Zero(d), least = hn::Zero(d), not_finite = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= columns; i += lanes) {
    const auto x = LoadF32(d, row + i);
    most = hn::Max(most, x);
    least = hn::Min(least, x);
    not_finite = hn::Add(not_finite, hn::Sub(x, x));  // NaN for infinities as well
  }
  if (i < columns) {
    const auto x = LoadSome(d, row + i, columns - i);
    most = hn::Max(most, x);
    least = hn::Min(least, x);
    not_finite = hn::Add(not_finite, hn::Sub(x, x));
  }
  const float none = SumLanes(d, not_finite);
  return {hn::GetLane(hn::MinOfLanes(d, least)) + none,
          hn::GetLane(hn::MaxOfLanes(d, most)) + none};
}

/// values = round(x · inverse) + zero, as bytes of type B.
template <typename T, typename B>
HWY_INLINE void RoundRow(const T* row, int64_t columns, float inverse, int32_t zero, B* values) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const hn::Rebind<B, FloatTag> d8;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, inverse);
  const auto offset = hn::Set(di, zero);
  int64_t i = 0;
  for (; i + lanes <= columns; i += lanes) {
    const auto rounded = hn::NearestInt(hn::Mul(LoadF32(d, row + i), factor));
    hn::StoreU(hn::DemoteTo(d8, hn::Add(rounded, offset)), d8, values + i);
  }
  if (i == columns) return;
  HWY_ALIGN B rest[hn::MaxLanes(FloatTag())];
  const auto rounded = hn::NearestInt(hn::Mul(LoadSome(d, row + i, columns - i), factor));
  hn::Store(hn::DemoteTo(d8, hn::Add(rounded, offset)), d8, rest);
  std::memcpy(values + i, rest, static_cast<std::size_t>(columns - i));
}

/// A weight's.
template <typename T>
void QuantizeRow(const T* row, int64_t columns, int8_t* values, float& scale) {
  const Range range = RangeOf(row, columns);
  const float magnitude = std::max(-range.least, range.most);
  scale = magnitude / kLargest;
  RoundRow(row, columns, magnitude > 0 ? kLargest / magnitude : 0.0F, 0, values);
}

/// Activations'.
template <typename T>
void QuantizeRow(const T* row, int64_t columns, uint8_t* values, QuantizedRow& how) {
  const Range range = RangeOf(row, columns);
  const float width = range.most - range.least;
  const float inverse = width > 0 ? kLargestByte / width : 0.0F;
  how.scale = width / kLargestByte;
  how.zero = std::isfinite(width) ? static_cast<int32_t>(std::lround(-range.least * inverse)) : 0;
  RoundRow(row, columns, inverse, how.zero, values);
}

template <typename B, typename How>
void QuantizeAll(const Tensor& x, B* values, How* how) {
  const int64_t columns = x.columns();
  for (int64_t row = 0; row < x.rows(); ++row) {
    B* to = values + row * columns;
    if (x.dtype() == DType::kFloat32) {
      QuantizeRow(x.data<float>() + row * x.row_stride(), columns, to, how[row]);
    } else {
      QuantizeRow(x.data<BFloat16>() + row * x.row_stride(), columns, to, how[row]);
    }
  }
}

void QuantizeWeight(const Tensor& x, int8_t* values, float* scales) {
  QuantizeAll(x, values, scales);
}

void QuantizeRows(const Tensor& x, uint8_t* values, QuantizedRow* rows) {
  QuantizeAll(x, values, rows);
}

}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "attend/base/error.h"

namespace attend {

HWY_EXPORT(QuantizeRows);
HWY_EXPORT(QuantizeWeight);

void quantize_rows(const Tensor& x, uint8_t* values, QuantizedRow* rows) {
  if (x.dtype() == DType::kInt8) fail("quantize: the numbers are int8 already");
  HWY_DYNAMIC_DISPATCH(QuantizeRows)(x, values, rows);
}

QuantizedMatrix quantize(const Tensor& x) {
  QuantizedMatrix made{Tensor({x.rows(), x.columns()}, DType::kInt8),
                       Tensor({x.rows()}, DType::kFloat32)};
  if (x.dtype() == DType::kInt8) fail("quantize: the numbers are int8 already");
  HWY_DYNAMIC_DISPATCH(QuantizeWeight)
  (x, made.values.data<int8_t>(), made.scales.data<float>());
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
