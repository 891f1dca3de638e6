#include "attend/kernels/rows.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/rows.cc"
#include "attend/kernels/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include "attend/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {
namespace {

template <typename From, typename To>
void ConvertRow(const From* from, int64_t columns, To* to) {
  const FloatTag d;
  for (int64_t i = 0; i < columns; i += static_cast<int64_t>(hn::Lanes(d))) {
    StoreSome(LoadSome(d, from + i, columns - i), d, to + i, columns - i);
  }
}

template <typename From, typename To>
void ScatterAs(const Tensor& from, const int32_t* rows, const Tensor& to) {
  for (int64_t row = 0; row < from.rows(); ++row) {
    ConvertRow(from.data<From>() + row * from.row_stride(), from.columns(),
               to.data<To>() + rows[row] * to.row_stride());
  }
}

void Scatter(const Tensor& from, const int32_t* rows, const Tensor& to) {
  const bool wide_from = from.dtype() == DType::kFloat32, wide_to = to.dtype() == DType::kFloat32;
  if (wide_from) {
    wide_to ? ScatterAs<float, float>(from, rows, to) : ScatterAs<float, BFloat16>(from, rows, to);
  } else {
    wide_to ? ScatterAs<BFloat16, float>(from, rows, to)
            : ScatterAs<BFloat16, BFloat16>(from, rows, to);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "attend/base/error.h"

namespace attend {

HWY_EXPORT(Scatter);

void scatter_rows(const Tensor& from, std::span<const int32_t> rows, const Tensor& to) {
  if (std::ssize(rows) != from.rows() || from.columns() != to.columns()) {
    fail("scatter_rows: {} places for rows {} in {}", rows.size(), to_string(from.shape()),
         to_string(to.shape()));
  }
  for (const int32_t row : rows) {
    if (row < 0 || row >= to.rows()) fail("scatter_rows: row {} of {}", row, to.rows());
  }
  HWY_DYNAMIC_DISPATCH(Scatter)(from, rows.data(), to);
}

}  // namespace attend
#endif  // HWY_ONCE
