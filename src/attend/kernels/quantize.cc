#include "attend/kernels/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

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
  const auto zero = hn::Zero(d);
  auto most = zero, least = zero, not_finite = zero;
  const auto add = [&](FloatVector x) HWY_ATTR {
    most = hn::Max(most, x);
    least = hn::Min(least, x);
    not_finite = hn::MulAdd(x, zero, not_finite);  // NaN for infinities as well
  };
  int64_t i = 0;
  for (; i + lanes <= columns; i += lanes) add(LoadF32(d, row + i));
  if (i < columns) add(LoadSome(d, row + i, columns - i));
  if (!hn::AllTrue(d, hn::Eq(not_finite, zero))) {
    constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
    return {kNone, kNone};
  }
  return {hn::GetLane(hn::MinOfLanes(d, least)), hn::GetLane(hn::MaxOfLanes(d, most))};
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
  const auto rounded = [&](FloatVector x)
                           HWY_ATTR { return hn::Add(hn::NearestInt(hn::Mul(x, factor)), offset); };
  int64_t i = 0;
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  // Four vectors into one, in a third of the instructions.
  const auto at = [&](int64_t j) HWY_ATTR {
    return _mm512_add_epi32(_mm512_cvtps_epi32(hn::Mul(LoadF32(d, row + j), factor).raw),
                            offset.raw);
  };
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  for (; i + 4 * lanes <= columns; i += 4 * lanes) {
    const __m512i low = _mm512_packs_epi32(at(i), at(i + lanes));
    const __m512i high = _mm512_packs_epi32(at(i + 2 * lanes), at(i + 3 * lanes));
    const __m512i bytes =
        std::is_signed_v<B> ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
    _mm512_storeu_si512(values + i, _mm512_permutexvar_epi32(order, bytes));
  }
#endif
  for (; i + lanes <= columns; i += lanes) {
    hn::StoreU(hn::DemoteTo(d8, rounded(LoadF32(d, row + i))), d8, values + i);
  }
  if (i == columns) return;
  HWY_ALIGN B rest[hn::MaxLanes(FloatTag())];
  hn::Store(hn::DemoteTo(d8, rounded(LoadSome(d, row + i, columns - i))), d8, rest);
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

template <typename T>
void QuantizeWeightAs(const Tensor& x, int8_t* values, float* scales) {
  for (int64_t row = 0; row < x.rows(); ++row) {
    QuantizeRow(x.data<T>() + row * x.row_stride(), x.columns(), values + row * x.columns(),
                scales[row]);
  }
}

/// Activations, a few rows at a time. What a row needs one after the other (its range, a division,
/// its bytes) takes long to wait for, so rows are taken through each together.
template <typename T>
void QuantizeRowsAs(const Tensor& x, uint8_t* values, int64_t stride, QuantizedRow* how) {
  constexpr int64_t kTogether = 8;
  const int64_t columns = x.columns();
  for (int64_t first = 0; first < x.rows(); first += kTogether) {
    const int64_t rows = std::min(kTogether, x.rows() - first);
    const T* from = x.data<T>() + first * x.row_stride();
    Range ranges[kTogether];
    for (int64_t i = 0; i < rows; ++i) ranges[i] = RangeOf(from + i * x.row_stride(), columns);
    float inverses[kTogether];
    int32_t zeros[kTogether];
    for (int64_t i = 0; i < rows; ++i) {
      const float width = ranges[i].most - ranges[i].least;
      inverses[i] = width > 0 ? kLargestByte / width : 0.0F;
      // At most 255, half up: the sign is known. NaN is no number for a cast.
      const float zero = std::isfinite(width) ? -ranges[i].least * inverses[i] + 0.5F : 0.0F;
      zeros[i] = static_cast<int32_t>(zero);
      how[first + i] = {.scale = width / kLargestByte, .zero = static_cast<float>(zeros[i])};
    }
    for (int64_t i = 0; i < rows; ++i) {
      RoundRow(from + i * x.row_stride(), columns, inverses[i], zeros[i],
               values + (first + i) * stride);
    }
  }
}

void QuantizeWeight(const Tensor& x, int8_t* values, float* scales) {
  const bool floats = x.dtype() == DType::kFloat32;
  (floats ? QuantizeWeightAs<float> : QuantizeWeightAs<BFloat16>)(x, values, scales);
}

void QuantizeRows(const Tensor& x, uint8_t* values, int64_t stride, QuantizedRow* rows) {
  const bool floats = x.dtype() == DType::kFloat32;
  (floats ? QuantizeRowsAs<float> : QuantizeRowsAs<BFloat16>)(x, values, stride, rows);
}

}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "attend/base/error.h"

namespace attend {

HWY_EXPORT(QuantizeRows);
HWY_EXPORT(QuantizeWeight);

void quantize_rows(const Tensor& x, uint8_t* values, int64_t stride, QuantizedRow* rows) {
  if (x.dtype() == DType::kInt8) fail("quantize: the numbers are int8 already");
  HWY_DYNAMIC_DISPATCH(QuantizeRows)(x, values, stride, rows);
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
