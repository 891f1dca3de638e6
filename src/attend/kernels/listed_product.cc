#include "attend/kernels/listed_product.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>
#include <vector>

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/listed_product.cc"
#include "attend/kernels/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include <hwy/cache_control.h>

#include "attend/kernels/vector-inl.h"

#ifndef ATTEND_KERNELS_LISTED_PRODUCT_ONCE
#define ATTEND_KERNELS_LISTED_PRODUCT_ONCE
namespace attend {

/// Rows in the form in which they are multiplied, each with zeros up to whole vectors.
template <typename T>
struct PaddedRows {
  static constexpr int64_t kMostLanes = 64;

  PaddedRows(int64_t the_rows, int64_t columns)
      : rows(the_rows),
        stride((columns + kMostLanes - 1) / kMostLanes * kMostLanes),
        values(static_cast<std::size_t>(rows * stride)) {}
  const T* Row(int64_t row) const { return values.data() + row * stride; }
  T* Row(int64_t row) { return values.data() + row * stride; }

  int64_t rows, stride;
  std::vector<T> values;
};

/// Rows of the weight that are multiplied at once.
constexpr int64_t kListedAtOnce = 4;

}  // namespace attend
#endif

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

/// Whole numbers: int8 weights and the unsigned bytes of x, both widened to int16 on the way.
struct Int8Arithmetic {
  using X = uint8_t;
  using Weight = int8_t;
  using Sum = int32_t;
  using Tag = hn::CappedTag<int16_t, 32>;
  using SumTag = hn::RepartitionToWide<Tag>;
  using ByteTag = hn::Rebind<int8_t, Tag>;

  static HWY_INLINE hn::Vec<Tag> LoadX(const uint8_t* from) {
    return hn::PromoteTo(Tag(), hn::LoadU(hn::RebindToUnsigned<ByteTag>(), from));
  }
  static HWY_INLINE hn::Vec<Tag> Load(const int8_t* from) {
    return hn::PromoteTo(Tag(), hn::LoadU(ByteTag(), from));
  }
  static HWY_INLINE hn::Vec<Tag> LoadSome(const int8_t* from, int64_t count) {
    HWY_ALIGN int8_t padded[hn::MaxLanes(Tag())] = {};
    std::memcpy(padded, from, static_cast<std::size_t>(count));
    return Load(padded);
  }
  static HWY_INLINE hn::Vec<SumTag> MulAdd(hn::Vec<Tag> a, hn::Vec<Tag> b, hn::Vec<SumTag> sum) {
    auto others = hn::Zero(SumTag());
    const auto some = hn::ReorderWidenMulAccumulate(SumTag(), a, b, sum, others);
    return hn::Add(some, others);
  }
};

#if HWY_TARGET == HWY_AVX3
/// The same by VNNI, which Highway does not have yet: four products and their sum in one.
struct VnniArithmetic {
  using X = uint8_t;
  using Weight = int8_t;
  using Sum = int32_t;
  using Tag = hn::CappedTag<int8_t, 64>;
  using SumTag = hn::CappedTag<int32_t, 16>;

  static HWY_INLINE hn::Vec<Tag> LoadX(const uint8_t* from) {
    return hn::LoadU(Tag(), reinterpret_cast<const int8_t*>(from));
  }
  static HWY_INLINE hn::Vec<Tag> Load(const int8_t* from) { return hn::LoadU(Tag(), from); }
  static HWY_INLINE hn::Vec<Tag> LoadSome(const int8_t* from, int64_t count) {
    HWY_ALIGN int8_t padded[hn::MaxLanes(Tag())] = {};
    std::memcpy(padded, from, static_cast<std::size_t>(count));
    return Load(padded);
  }
  static HWY_INLINE hn::Vec<SumTag> MulAdd(hn::Vec<Tag> a, hn::Vec<Tag> b, hn::Vec<SumTag> sum) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
    return sum;
  }
};
#endif

template <typename T>
struct FloatArithmetic {
  using X = float;
  using Weight = T;
  using Sum = float;
  using Tag = FloatTag;
  using SumTag = FloatTag;

  static HWY_INLINE FloatVector LoadX(const float* from) { return hn::LoadU(Tag(), from); }
  static HWY_INLINE FloatVector Load(const T* from) { return LoadF32(Tag(), from); }
  static HWY_INLINE FloatVector LoadSome(const T* from, int64_t count) {
    return HWY_NAMESPACE::LoadSome(Tag(), from, count);
  }
  static HWY_INLINE FloatVector MulAdd(FloatVector a, FloatVector b, FloatVector sum) {
    return hn::MulAdd(a, b, sum);
  }
};

/// The sums of the lanes of four vectors.
template <class D, class V>
HWY_INLINE void SumLanesOfFour(D d, const V* four, hn::TFromD<D>* sums) {
  const hn::RepartitionToWide<D> wide;
  const hn::CappedTag<hn::TFromD<D>, 4> block;
  const auto halve = [&](V a, V b) HWY_ATTR {
    return hn::BitCast(wide, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  };
  const auto low = halve(four[0], four[1]), high = halve(four[2], four[3]);
  const auto by_block =  // four sums in every block of four lanes
      hn::Add(hn::BitCast(d, hn::InterleaveLower(wide, low, high)),
              hn::BitCast(d, hn::InterleaveUpper(wide, low, high)));
  HWY_ALIGN hn::TFromD<D> blocks[hn::MaxLanes(d)];
  hn::Store(by_block, d, blocks);
  auto sum = hn::Load(block, blocks);
  for (std::size_t i = 4; i < hn::Lanes(d); i += 4) sum = hn::Add(sum, hn::Load(block, blocks + i));
  hn::StoreU(sum, block, sums);
}

/// The products of some rows of x and four of the weight: sums [kRows][4].
template <std::size_t kRows, class Arithmetic>
HWY_INLINE void MultiplyFour(const std::array<const typename Arithmetic::X*, kRows>& x,
                             const std::array<const typename Arithmetic::Weight*, 4>& weight,
                             int64_t columns, typename Arithmetic::Sum* sums) {
  const typename Arithmetic::Tag d;
  const typename Arithmetic::SumTag ds;
  using V = hn::Vec<typename Arithmetic::Tag>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<typename Arithmetic::SumTag> in_lanes[kRows][4];
  for (auto& row : in_lanes) {
    for (auto& sum : row) sum = hn::Zero(ds);
  }
  const auto add = [&](int64_t i, const auto& load) HWY_ATTR {
    const V w[4] = {load(weight[0] + i), load(weight[1] + i), load(weight[2] + i),
                    load(weight[3] + i)};
    for (std::size_t r = 0; r < kRows; ++r) {
      const V of_x = Arithmetic::LoadX(x[r] + i);
      for (int j = 0; j < 4; ++j) in_lanes[r][j] = Arithmetic::MulAdd(of_x, w[j], in_lanes[r][j]);
    }
  };
  int64_t i = 0;
  for (; i + lanes <= columns; i += lanes) {
    add(i, [](const auto* from) HWY_ATTR { return Arithmetic::Load(from); });
  }
  if (i < columns) {
    add(i, [&](const auto* from) HWY_ATTR { return Arithmetic::LoadSome(from, columns - i); });
  }
  for (std::size_t r = 0; r < kRows; ++r) SumLanesOfFour(ds, in_lanes[r], sums + 4 * r);
}

using FourTag = hn::CappedTag<float, kListedAtOnce>;

template <typename T>
HWY_INLINE void PrefetchRow(const T* row, int64_t columns) {
  constexpr int64_t kLine = 64;
  const auto* bytes = reinterpret_cast<const std::byte*>(row);
  for (int64_t at = 0; at < columns * int64_t{sizeof(T)}; at += kLine) hwy::Prefetch(bytes + at);
}

/// Rows of x times all that is listed. `finish(i, sums, count)` gets the sums of all rows and of up
/// to four that are listed, from the i-th on.
template <std::size_t kRows, class Arithmetic, class Finish>
void MultiplyRows(const std::array<const typename Arithmetic::X*, kRows>& x,
                  const typename Arithmetic::Weight* weight, int64_t columns,
                  std::span<const int32_t> listed, const Finish& finish) {
  typename Arithmetic::Sum sums[kRows * kListedAtOnce];
  const int64_t count = std::ssize(listed);
  const auto row_at = [&](int64_t i) HWY_ATTR {
    return weight + int64_t{listed[static_cast<std::size_t>(std::min(i, count - 1))]} * columns;
  };
  for (int64_t i = 0; i < count; i += kListedAtOnce) {
    for (int64_t j = 0; j < kListedAtOnce; ++j) PrefetchRow(row_at(i + kListedAtOnce + j), columns);
    MultiplyFour<kRows, Arithmetic>(x, {row_at(i), row_at(i + 1), row_at(i + 2), row_at(i + 3)},
                                    columns, sums);
    finish(i, sums, std::min(kListedAtOnce, count - i));
  }
}

/// As many rows at once as registers allow. `multiply(first, rows)` is told how many at compile
/// time.
template <class Multiply>
HWY_INLINE void ForRows(int64_t rows, const Multiply& multiply) {
  constexpr std::size_t kMostRows = hn::MaxLanes(FloatTag()) >= 16 ? 4 : 2;
  int64_t row = 0;
  for (; row + int64_t{kMostRows} <= rows; row += kMostRows) {
    multiply(row, std::integral_constant<std::size_t, kMostRows>());
  }
  if (row + 2 <= rows) {
    multiply(row, std::integral_constant<std::size_t, 2>());
    row += 2;
  }
  if (row < rows) multiply(row, std::integral_constant<std::size_t, 1>());
}

/// y's numbers [row, i] to [row, i + count).
HWY_INLINE void StoreFour(hn::Vec<FourTag> value, const Tensor& y, int64_t row, int64_t i,
                          int64_t count) {
  StoreSome(value, FourTag(), y.data<float>() + row * y.row_stride() + i, count);
}

template <typename From>
PaddedRows<float> Widened(const Tensor& x) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), columns = x.columns();
  PaddedRows<float> made(x.rows(), columns);
  for (int64_t row = 0; row < x.rows(); ++row) {
    const From* from = x.data<From>() + row * x.row_stride();
    for (int64_t i = 0; i < columns; i += lanes) {
      hn::StoreU(LoadSome(d, from + i, columns - i), d, made.Row(row) + i);
    }
  }
  return made;
}

template <typename T>
void MultiplyFloats(const PaddedRows<float>& x, const Tensor& weight,
                    std::span<const int32_t> listed, const Tensor& y) {
  ForRows(x.rows, [&](int64_t first, auto rows) HWY_ATTR {
    constexpr std::size_t kRows = rows();
    std::array<const float*, kRows> of_x;
    for (std::size_t r = 0; r < kRows; ++r) of_x[r] = x.Row(first + static_cast<int64_t>(r));
    MultiplyRows<kRows, FloatArithmetic<T>>(
        of_x, weight.data<T>(), weight.columns(), listed,
        [&](int64_t i, const float* sums, int64_t count) HWY_ATTR {
          for (int64_t r = 0; r < int64_t{kRows}; ++r) {
            StoreFour(hn::LoadU(FourTag(), sums + 4 * r), y, first + r, i, count);
          }
        });
  });
}

void MultiplyListed(const Tensor& x, const Tensor& weight, std::span<const int32_t> listed,
                    const Tensor& y) {
  const PaddedRows<float> rows =
      x.dtype() == DType::kFloat32 ? Widened<float>(x) : Widened<BFloat16>(x);
  if (weight.dtype() == DType::kFloat32) {
    MultiplyFloats<float>(rows, weight, listed, y);
  } else {
    MultiplyFloats<BFloat16>(rows, weight, listed, y);
  }
}

/// A byte of x is its number and the row's zero, so that a product has zero times the sum of the
/// weight's row too much: that sum is the product of a last row, of ones.
template <class Arithmetic>
void MultiplyBytes(const PaddedRows<uint8_t>& x, const QuantizedRow* quantized,
                   const QuantizedMatrix& weight, const float* scales,
                   std::span<const int32_t> listed, const Tensor& y) {
  const FourTag d;
  const hn::RebindToSigned<FourTag> di;
  ForRows(x.rows - 1, [&](int64_t first, auto rows) HWY_ATTR {
    constexpr std::size_t kRows = rows();
    std::array<const uint8_t*, kRows + 1> of_x;
    for (std::size_t r = 0; r < kRows; ++r) of_x[r] = x.Row(first + static_cast<int64_t>(r));
    of_x.back() = x.Row(x.rows - 1);
    MultiplyRows<kRows + 1, Arithmetic>(
        of_x, weight.values.data<int8_t>(), weight.values.columns(), listed,
        [&](int64_t i, const int32_t* sums, int64_t count) HWY_ATTR {
          const auto of_ones = hn::LoadU(di, sums + 4 * kRows);
          const auto listed_scales = hn::LoadU(d, scales + i);
          for (int64_t r = 0; r < int64_t{kRows}; ++r) {
            const QuantizedRow& how = quantized[first + r];
            const auto sum = hn::Sub(hn::LoadU(di, sums + 4 * r),
                                     hn::Mul(of_ones, hn::Set(di, static_cast<int32_t>(how.zero))));
            const auto scale = hn::Mul(listed_scales, hn::Set(d, how.scale));
            StoreFour(hn::Mul(hn::ConvertTo(d, sum), scale), y, first + r, i, count);
          }
        });
  });
}

void MultiplyListedInt8(const PaddedRows<uint8_t>& x, const QuantizedRow* quantized,
                        const QuantizedMatrix& weight, std::span<const int32_t> listed,
                        const Tensor& y, [[maybe_unused]] bool has_vnni) {
  std::vector<float> scales(listed.size() + kListedAtOnce);
  std::ranges::transform(listed, scales.begin(),
                         [&](int32_t row) { return weight.scales.data<float>()[row]; });
#if HWY_TARGET == HWY_AVX3
  if (has_vnni) {
    MultiplyBytes<VnniArithmetic>(x, quantized, weight, scales.data(), listed, y);
    return;
  }
#endif
  MultiplyBytes<Int8Arithmetic>(x, quantized, weight, scales.data(), listed, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "attend/base/error.h"
#include "attend/base/profile.h"
#include "attend/kernels/gemm.h"

namespace attend {

HWY_EXPORT(MultiplyListed);
HWY_EXPORT(MultiplyListedInt8);

namespace {

void check(const Tensor& x, const Tensor& weight, std::span<const int32_t> listed,
           const Tensor& y) {
  if (x.columns() != weight.columns() || y.rows() != x.rows() ||
      y.columns() != std::ssize(listed) || y.dtype() != DType::kFloat32 || !weight.contiguous()) {
    fail("product of {} and {} listed rows of {} does not fit into {}", to_string(x.shape()),
         listed.size(), to_string(weight.shape()), to_string(y.shape()));
  }
  for (const int32_t row : listed) {
    if (row < 0 || row >= weight.rows()) fail("row {} of a weight of {}", row, weight.rows());
  }
}

double operations(const Tensor& x, std::span<const int32_t> listed) {
  return 2.0 * static_cast<double>(x.count()) * static_cast<double>(listed.size());
}

}  // namespace

void multiply_listed(const Tensor& x, const Tensor& weight, std::span<const int32_t> listed,
                     const Tensor& y) {
  check(x, weight, listed, y);
  if (y.count() == 0) return;
  const ProfileScope scope("listed product", operations(x, listed));
  HWY_DYNAMIC_DISPATCH(MultiplyListed)(x, weight, listed, y);
}

void multiply_listed(const Tensor& x, const QuantizedMatrix& weight,
                     std::span<const int32_t> listed, const Tensor& y) {
  check(x, weight.values, listed, y);
  if (y.count() == 0) return;
  const ProfileScope scope("listed product", operations(x, listed));
  const int64_t columns = x.columns();
  std::vector<QuantizedRow> quantized(static_cast<std::size_t>(x.rows()));
  PaddedRows<uint8_t> rows(x.rows() + 1, columns);
  quantize_rows(x, rows.Row(0), rows.stride, quantized.data());
  std::fill_n(rows.Row(x.rows()), columns, uint8_t{1});
  HWY_DYNAMIC_DISPATCH(MultiplyListedInt8)
  (rows, quantized.data(), weight, listed, y, has_int8_arithmetic());
}

}  // namespace attend
#endif  // HWY_ONCE
