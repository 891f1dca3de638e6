#include "attend/kernels/rotary.h"

#include <memory>

// The order matters.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/rotary.cc"
#include "attend/kernels/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include "attend/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {
namespace {

/// table [positions, width] holds cosine and sine of each pair; direction is 1 or -1.
template <typename T>
void RotateAs(const Tensor& x, std::span<const int32_t> positions, int64_t heads,
              const float* table, float direction, const Tensor& out) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), width = x.columns() / heads;
  const auto plus = hn::Set(d, direction);
  const auto signs = hn::OddEven(plus, hn::Neg(plus));  // the even lanes lose, the odd ones gain
  for (int64_t row = 0; row < x.rows(); ++row) {
    const float* angles = table + positions[static_cast<std::size_t>(row)] * width;
    const T* from = x.data<T>() + row * x.row_stride();
    T* to = out.data<T>() + row * out.row_stride();
    for (int64_t head = 0; head < heads; ++head, from += width, to += width) {
      for (int64_t column = 0; column < width; column += lanes) {
        const int64_t count = width - column;
        const auto angle = LoadSome(d, angles + column, count);
        const auto cosine = hn::DupEven(angle), sine = hn::Mul(hn::DupOdd(angle), signs);
        const auto value = LoadSome(d, from + column, count);
        const auto swapped = hn::Reverse2(d, value);
        StoreSome(hn::MulAdd(value, cosine, hn::Mul(swapped, sine)), d, to + column, count);
      }
    }
  }
}

void Rotate(const Tensor& x, std::span<const int32_t> positions, int64_t heads, const float* table,
            float direction, const Tensor& out) {
  if (x.dtype() == DType::kFloat32) {
    RotateAs<float>(x, positions, heads, table, direction, out);
  } else {
    RotateAs<BFloat16>(x, positions, heads, table, direction, out);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "attend/base/error.h"

namespace attend {
namespace {

HWY_EXPORT(Rotate);

/// Cosine and sine of position * 10000^(-2i / width), next to each other: [positions, width].
struct RotaryTable {
  int64_t positions = 0;
  std::vector<float> values;
};

std::shared_ptr<const RotaryTable> make_table(int64_t width, int64_t positions) {
  auto made = std::make_shared<RotaryTable>();
  made->positions = positions;
  made->values.reserve(static_cast<std::size_t>(positions * width));
  for (int64_t position = 0; position < positions; ++position) {
    for (int64_t i = 0; i < width; i += 2) {
      const double exponent = -static_cast<double>(i) / static_cast<double>(width);
      const double angle = static_cast<double>(position) * std::pow(10000.0, exponent);
      made->values.push_back(static_cast<float>(std::cos(angle)));
      made->values.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  return made;
}

/// A table of at least so many positions. One a width is kept for all threads; it is replaced by
/// one of twice the size when it proves too short.
std::shared_ptr<const RotaryTable> table_for(int64_t width, int64_t positions) {
  static std::mutex mutex;
  static std::map<int64_t, std::shared_ptr<const RotaryTable>> tables;
  const std::scoped_lock lock(mutex);
  auto& table = tables[width];
  if (table == nullptr || table->positions < positions) {
    const int64_t before = table == nullptr ? 512 : 2 * table->positions;
    table = make_table(width, std::max(positions, before));
  }
  return table;
}

void rotate(const char* what, const Tensor& x, std::span<const int32_t> positions, int64_t heads,
            float direction, const Tensor& out) {
  if (heads < 1 || x.columns() % heads != 0 || x.columns() / heads % 2 != 0) {
    fail("{}: {} columns cannot be {} heads of an even width", what, x.columns(), heads);
  }
  if (out.rows() != x.rows() || out.columns() != x.columns() || out.dtype() != x.dtype()) {
    fail("{}: from {} {} to {} {}", what, name_of(x.dtype()), to_string(x.shape()),
         name_of(out.dtype()), to_string(out.shape()));
  }
  if (static_cast<int64_t>(positions.size()) != x.rows()) {
    fail("{}: {} positions for {} rows", what, positions.size(), x.rows());
  }
  if (positions.empty()) return;
  const auto [least, most] = std::minmax_element(positions.begin(), positions.end());
  if (*least < 0) fail("{}: position {}", what, *least);
  const auto table = table_for(x.columns() / heads, int64_t{*most} + 1);
  HWY_DYNAMIC_DISPATCH(Rotate)(x, positions, heads, table->values.data(), direction, out);
}

}  // namespace

std::vector<int32_t> positions_in_sequences(std::span<const int64_t> offsets) {
  std::vector<int32_t> positions;
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
    for (int64_t t = 0; t < offsets[s + 1] - offsets[s]; ++t) {
      positions.push_back(static_cast<int32_t>(t));
    }
  }
  return positions;
}

void rotary_forward(const Tensor& x, std::span<const int32_t> positions, int64_t heads,
                    const Tensor& out) {
  rotate("rotary_forward", x, positions, heads, 1.0F, out);
}

void rotary_backward(const Tensor& d_out, std::span<const int32_t> positions, int64_t heads,
                     const Tensor& d_x) {
  rotate("rotary_backward", d_out, positions, heads, -1.0F, d_x);
}

}  // namespace attend
#endif  // HWY_ONCE
