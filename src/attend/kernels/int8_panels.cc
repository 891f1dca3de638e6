#include "attend/kernels/int8_panels.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "attend/base/error.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <hwy/highway.h>

// GCC 12 takes the undefined operand of its own intrinsics for a mistake of ours.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
// Of the functions below alone; has_int8_arithmetic() guards them.
HWY_PUSH_ATTRIBUTES("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")
namespace attend {
namespace {

constexpr int kLanes = 16;
constexpr int kVectors = 4;  ///< of a panel
constexpr int64_t kColumns = int64_t{kLanes} * kVectors;
constexpr int64_t kLine = 64;
constexpr int64_t kQuad = 4;  ///< bytes that are multiplied and added up at once
/// Rows at once: with the panel's four vectors and a row's bytes their sums fill the registers.
constexpr int64_t kMostRows = 6;

/// The first `count` lanes.
inline __mmask16 first_lanes(int64_t count) {
  return static_cast<__mmask16>((1U << std::clamp<int64_t>(count, 0, kLanes)) - 1);
}

/// Where sums go as they are: [rows, columns].
struct StoreSums {
  int32_t* to;
  int64_t columns;

  /// Of one vector of columns of kRows rows.
  template <int kRows>
  HWY_INLINE void operator()(int64_t first_row, int64_t column,
                             const __m512i (&sums)[kRows][kVectors], int vector) const {
    int32_t* at = to + first_row * columns + column;
    const __mmask16 lanes = first_lanes(columns - column);
    HWY_UNROLL(8)
    for (int row = 0; row < kRows; ++row) {
      _mm512_mask_storeu_epi32(at + row * columns, lanes, sums[row][vector]);
    }
  }
};

HWY_INLINE void store(float* to, __mmask16 lanes, __m512 value) {
  _mm512_mask_storeu_ps(to, lanes, value);
}

/// To the nearest, ties to even; a NaN stays one. As to_bfloat16.
HWY_INLINE void store(BFloat16* to, __mmask16 lanes, __m512 value) {
  const __m512i bits = _mm512_castps_si512(value);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
  const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
  const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  const __m512i kept = _mm512_mask_mov_epi32(rounded, nan, quiet);
  _mm256_mask_storeu_epi16(to, lanes, _mm512_cvtepi32_epi16(_mm512_srli_epi32(kept, 16)));
}

/// Where sums go as numbers.
template <typename T>
struct StoreNumbers {
  const QuantizedRow* rows;
  const float* column_scales;
  const float* column_sums;
  const float* bias;  ///< or null
  T* to;
  int64_t stride, columns;

  template <int kRows>
  HWY_INLINE void operator()(int64_t first_row, int64_t column,
                             const __m512i (&sums)[kRows][kVectors], int vector) const {
    const __mmask16 lanes = first_lanes(columns - column);
    const __m512 column_sum = _mm512_loadu_ps(column_sums + column);
    const __m512 column_scale = _mm512_loadu_ps(column_scales + column);
    const __m512 added =
        bias != nullptr ? _mm512_maskz_loadu_ps(lanes, bias + column) : _mm512_setzero_ps();
    const QuantizedRow* how = rows + first_row;
    T* at = to + first_row * stride + column;
    HWY_UNROLL(8)
    for (int row = 0; row < kRows; ++row, at += stride) {
      const __m512 centred = _mm512_fnmadd_ps(_mm512_set1_ps(how[row].zero), column_sum,
                                              _mm512_cvtepi32_ps(sums[row][vector]));
      const __m512 scale = _mm512_mul_ps(column_scale, _mm512_set1_ps(how[row].scale));
      store(at, lanes, _mm512_fmadd_ps(centred, scale, added));
    }
  }
};

/// To each lane of `sum` its four products. By hand: GCC 12 keeps copies of what its own intrinsic
/// adds to, more than there are registers.
HWY_INLINE void add_products(__m512i bytes, __m512i weight, __m512i& sum) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(bytes), "v"(weight));
}

/// kRows rows of x, from first_row on, by one panel, whose first channel is `column`. Meanwhile as
/// many cache lines as there are quads are called for, from `soon` on: all at once they would keep
/// others waiting.
template <int kRows, class Store>
HWY_INLINE void multiply_rows(const uint8_t* x, int64_t quads, const int8_t* panel,
                              const int8_t* soon, int64_t first_row, int64_t column,
                              const Store& store_sum) {
  // All loops but that over quads go away, so that sums are registers.
  __m512i sums[kRows][kVectors];
  HWY_UNROLL(8)
  for (int row = 0; row < kRows; ++row) {
    HWY_UNROLL(4)
    for (int i = 0; i < kVectors; ++i) sums[row][i] = _mm512_setzero_si512();
  }
  const uint8_t* from = x + first_row * quads * kQuad;
  for (int64_t quad = 0; quad < quads; ++quad, panel += kColumns * kQuad, from += kQuad) {
    _mm_prefetch(soon + quad * kLine, _MM_HINT_T1);
    __m512i weight[kVectors];
    HWY_UNROLL(4)
    for (int i = 0; i < kVectors; ++i) weight[i] = _mm512_loadu_si512(panel + i * 64);
    HWY_UNROLL(8)
    for (int row = 0; row < kRows; ++row) {
      int32_t four;
      std::memcpy(&four, from + row * quads * kQuad, sizeof(four));
      const __m512i bytes = _mm512_set1_epi32(four);
      HWY_UNROLL(4)
      for (int i = 0; i < kVectors; ++i) {
        add_products(bytes, weight[i], sums[row][i]);
      }
    }
  }
  HWY_UNROLL(4)
  for (int i = 0; i < kVectors; ++i) {
    if (column + i * kLanes >= store_sum.columns) return;
    store_sum(first_row, column + i * kLanes, sums, i);
  }
}

/// All rows by the panels of store_sum.columns channels: a panel stays in the first-level cache
/// while the rows pass, as many at once as make equal groups.
template <class Store>
void multiply_panels(const uint8_t* x, int64_t rows, int64_t quads, const int8_t* panels,
                     const Store& store_sum) {
  const int64_t groups = (rows + kMostRows - 1) / kMostRows;
  for (int64_t column = 0; column < store_sum.columns; column += kColumns) {
    const int8_t* panel = panels + column * quads * kQuad;
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t first = rows * group / groups, end = rows * (group + 1) / groups;
      // The first groups call for the next panel, whose lines are kVectors times the quads.
      const int64_t ahead = group < kVectors ? kColumns * kQuad + group * kLine : 0;
      const int8_t* soon = panel + ahead * quads;
      switch (end - first) {
        case 1:
          multiply_rows<1>(x, quads, panel, soon, first, column, store_sum);
          break;
        case 2:
          multiply_rows<2>(x, quads, panel, soon, first, column, store_sum);
          break;
        case 3:
          multiply_rows<3>(x, quads, panel, soon, first, column, store_sum);
          break;
        case 4:
          multiply_rows<4>(x, quads, panel, soon, first, column, store_sum);
          break;
        case 5:
          multiply_rows<5>(x, quads, panel, soon, first, column, store_sum);
          break;
        default:
          multiply_rows<kMostRows>(x, quads, panel, soon, first, column, store_sum);
      }
    }
  }
}

}  // namespace
}  // namespace attend
HWY_POP_ATTRIBUTES

namespace attend {

Int8Panels::Int8Panels(const QuantizedMatrix& weight)
    : in_(weight.values.columns()), out_(weight.values.rows()), quads_((in_ + kQuad - 1) / kQuad) {
  const int64_t columns = (out_ + kColumns - 1) / kColumns * kColumns;
  panels_ = Tensor::zeros({columns, quads_ * kQuad}, DType::kInt8);
  scales_ = Tensor::zeros({columns}, DType::kFloat32);
  column_sums_ = Tensor::zeros({columns}, DType::kFloat32);
  std::copy_n(weight.scales.data<float>(), out_, scales_.data<float>());
  for (int64_t channel = 0; channel < out_; ++channel) {
    const int8_t* from = weight.values.data<int8_t>() + channel * weight.values.row_stride();
    column_sums_.data<float>()[channel] = static_cast<float>(std::accumulate(from, from + in_, 0));
    int8_t* to = panels_.data<int8_t>() + channel / kColumns * kColumns * quads_ * kQuad +
                 channel % kColumns * kQuad;
    for (int64_t i = 0; i < in_; i += kQuad, to += kColumns * kQuad) {
      std::memcpy(to, from + i, static_cast<std::size_t>(std::min(kQuad, in_ - i)));
    }
  }
}

void Int8Panels::multiply(const uint8_t* x, int64_t rows, int64_t first_column, int64_t columns,
                          int32_t* sums) const {
  multiply_panels(x, rows, quads_, panels_.data<int8_t>() + first_column * quads_ * kQuad,
                  StoreSums{sums, columns});
}

void Int8Panels::multiply(const uint8_t* x, const QuantizedRow* rows, const Tensor& bias,
                          const Tensor& y) const {
  const float* added = bias.defined() ? bias.data<float>() : nullptr;
  if (y.dtype() == DType::kFloat32) {
    multiply_panels(x, y.rows(), quads_, panels_.data<int8_t>(),
                    StoreNumbers<float>{rows, column_scales(), column_sums(), added,
                                        y.data<float>(), y.row_stride(), out_});
  } else {
    multiply_panels(x, y.rows(), quads_, panels_.data<int8_t>(),
                    StoreNumbers<BFloat16>{rows, column_scales(), column_sums(), added,
                                           y.data<BFloat16>(), y.row_stride(), out_});
  }
}

}  // namespace attend
#else
namespace attend {
namespace {
[[noreturn]] void refuse() { fail("products of int8 need a CPU with AVX-512 VNNI"); }
}  // namespace

Int8Panels::Int8Panels(const QuantizedMatrix& /*weight*/) { refuse(); }
void Int8Panels::multiply(const uint8_t* /*x*/, int64_t /*rows*/, int64_t /*first_column*/,
                          int64_t /*columns*/, int32_t* /*sums*/) const {
  refuse();
}
void Int8Panels::multiply(const uint8_t* /*x*/, const QuantizedRow* /*rows*/,
                          const Tensor& /*bias*/, const Tensor& /*y*/) const {
  refuse();
}

}  // namespace attend
#endif
