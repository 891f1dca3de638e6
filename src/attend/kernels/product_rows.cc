#include "attend/kernels/product_rows.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/product_rows.cc"
#include "attend/kernels/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include "attend/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

template <typename From, typename To>
void CopyRows(const Tensor& x, To* to) {
  const FloatTag d;
  const int64_t columns = x.columns(), lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t row = 0; row < x.rows(); ++row, to += columns) {
    const From* from = x.data<From>() + row * x.row_stride();
    int64_t i = 0;
    for (; i + lanes <= columns; i += lanes) StoreF32(LoadF32(d, from + i), d, to + i);
    if (i < columns) StoreSome(LoadSome(d, from + i, columns - i), d, to + i, columns - i);
  }
}

template <typename To>
void CopyRowsTo(const Tensor& x, To* to) {
  if (x.dtype() == DType::kFloat32) {
    CopyRows<float>(x, to);
  } else {
    CopyRows<BFloat16>(x, to);
  }
}

void CopyAnyRows(const Tensor& x, DType dtype, std::byte* to) {
  if (dtype == DType::kFloat32) {
    CopyRowsTo(x, reinterpret_cast<float*>(to));
  } else {
    CopyRowsTo(x, reinterpret_cast<BFloat16*>(to));
  }
}

template <typename T>
void FinishTile(const ProductTile& tile, const Tensor& bias, const Tensor& y) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), columns = tile.columns;
  const float* added = bias.defined() ? bias.data<float>() + tile.first_column : nullptr;
  for (int64_t row = 0; row < tile.rows; ++row) {
    const float* from = tile.sums + row * columns;
    T* to = y.data<T>() + (tile.first_row + row) * y.row_stride() + tile.first_column;
    int64_t i = 0;
    for (; i + lanes <= columns; i += lanes) {
      auto value = hn::LoadU(d, from + i);
      if (added != nullptr) value = hn::Add(value, hn::LoadU(d, added + i));
      StoreF32(value, d, to + i);
    }
    if (i == columns) continue;
    auto value = LoadSome(d, from + i, columns - i);
    if (added != nullptr) value = hn::Add(value, LoadSome(d, added + i, columns - i));
    StoreSome(value, d, to + i, columns - i);
  }
}

void FinishRows(const ProductTile& tile, const Tensor& bias, const Tensor& y) {
  const auto finish = y.dtype() == DType::kFloat32 ? FinishTile<float> : FinishTile<BFloat16>;
  finish(tile, bias, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend {

HWY_EXPORT(CopyAnyRows);
HWY_EXPORT(FinishRows);

void pack_rows(const Tensor& x, DType dtype, std::byte* to) {
  HWY_DYNAMIC_DISPATCH(CopyAnyRows)(x, dtype, to);
}

void finish_rows(const ProductTile& tile, const Tensor& bias, const Tensor& y) {
  HWY_DYNAMIC_DISPATCH(FinishRows)(tile, bias, y);
}

}  // namespace attend
#endif  // HWY_ONCE
