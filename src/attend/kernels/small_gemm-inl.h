// Small float32 matrix products for attention: too small for a library call each. Included once for
// each instruction set.
#if defined(ATTEND_KERNELS_SMALL_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_SMALL_GEMM_INL_H_
#undef ATTEND_KERNELS_SMALL_GEMM_INL_H_
#else
#define ATTEND_KERNELS_SMALL_GEMM_INL_H_
#endif

#include <cstdint>
#include <type_traits>

#include "attend/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

/// Rows of a register tile; it is two vectors wide. Rows x 2 sums, 2 vectors of B and one of A must
/// fit the registers: 32 with AVX-512 and AArch64, else 16.
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3
constexpr int64_t kTileRows = 6;
#else
constexpr int64_t kTileRows = 8;
#endif

/// The left factor: element (row, k) is at data[row * stride + k], or at data[k * stride + row]
/// where it is transposed.
template <bool kTransposed>
struct LeftMatrix {
  const float* data;
  int64_t stride;
};

/// Which part of a product a tile of rows needs.
struct TileRange {
  int64_t first_column;  ///< columns before it are left alone; a multiple of the vector length
  int64_t depth_begin;   ///< k starts here
  int64_t depth_end;     ///< and ends here for the tile's first row,
  int64_t depth_slope;   ///< but row r of the tile goes on for min(r, depth_slope) more
};

/// C[kRows, kVectors vectors] (+)= A B over the range.
template <int kRows, int kVectors, bool kAccumulate, bool kTransposed, class D>
HWY_INLINE void GemmTile(D d, LeftMatrix<kTransposed> a, const float* b, int64_t b_stride, float* c,
                         int64_t c_stride, const TileRange& range) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<D> sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = kAccumulate ? hn::LoadU(d, c + r * c_stride + v * lanes) : hn::Zero(d);
    }
  }
  const auto left = [&](int r, int64_t k) HWY_ATTR {
    return hn::Set(d, kTransposed ? a.data[k * a.stride + r] : a.data[r * a.stride + k]);
  };
  const float* b_row = b + range.depth_begin * b_stride;
  for (int64_t k = range.depth_begin; k < range.depth_end; ++k, b_row += b_stride) {
    hn::Vec<D> right[kVectors];
    for (int v = 0; v < kVectors; ++v) right[v] = hn::LoadU(d, b_row + v * lanes);
    for (int r = 0; r < kRows; ++r) {
      const auto factor = left(r, k);
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(factor, right[v], sums[r][v]);
    }
  }
  for (int64_t step = 0; step < range.depth_slope; ++step, b_row += b_stride) {
    hn::Vec<D> right[kVectors];
    for (int v = 0; v < kVectors; ++v) right[v] = hn::LoadU(d, b_row + v * lanes);
    for (int r = 1; r < kRows; ++r) {
      if (r <= step) continue;
      const auto factor = left(r, range.depth_end + step);
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(factor, right[v], sums[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[r][v], d, c + r * c_stride + v * lanes);
  }
}

/// The tiles of kRows rows: two vectors wide, at the end one, or half a one.
template <int kRows, bool kAccumulate, bool kTransposed>
HWY_NOINLINE void GemmRows(LeftMatrix<kTransposed> a, const float* b, int64_t b_stride, float* c,
                           int64_t c_stride, int64_t columns, const TileRange& range) {
  const FloatTag d;
  const hn::Half<FloatTag> half;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t at = range.first_column;
  for (; columns - at > lanes; at += 2 * lanes) {
    GemmTile<kRows, 2, kAccumulate>(d, a, b + at, b_stride, c + at, c_stride, range);
  }
  if (at >= columns) return;
  if (columns - at > lanes / 2) {
    GemmTile<kRows, 1, kAccumulate>(d, a, b + at, b_stride, c + at, c_stride, range);
  } else {
    GemmTile<kRows, 1, kAccumulate>(half, a, b + at, b_stride, c + at, c_stride, range);
  }
}

/// C[rows, columns] = A[rows, depth] B[depth, columns], or += with kAccumulate. Rows of B and C
/// must be readable and writable up to the next multiple of the vector length. `range_of(first_row,
/// rows)` gives the TileRange of a tile. Each element is one chain of fused multiply-adds over
/// ascending k, so it does not depend on how the matrix is cut into tiles.
template <bool kAccumulate, bool kTransposed, class RangeOf>
HWY_INLINE void SmallGemm(int64_t rows, int64_t columns, LeftMatrix<kTransposed> a, const float* b,
                          int64_t b_stride, float* c, int64_t c_stride, const RangeOf& range_of) {
  const int64_t tiles = (rows + kTileRows - 1) / kTileRows;
  int64_t first = 0;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const int64_t count = (rows - first) / (tiles - tile);  // tiles of nearly equal height
    const LeftMatrix<kTransposed> part{a.data + first * (kTransposed ? 1 : a.stride), a.stride};
    const TileRange range = range_of(first, count);
    float* out = c + first * c_stride;
    const auto run = [&](auto height) HWY_ATTR {
      constexpr int kRows = decltype(height)::value;
      if constexpr (kRows <= kTileRows) {
        GemmRows<kRows, kAccumulate>(part, b, b_stride, out, c_stride, columns, range);
      }
    };
    switch (count) {
      case 1:
        run(std::integral_constant<int, 1>());
        break;
      case 2:
        run(std::integral_constant<int, 2>());
        break;
      case 3:
        run(std::integral_constant<int, 3>());
        break;
      case 4:
        run(std::integral_constant<int, 4>());
        break;
      case 5:
        run(std::integral_constant<int, 5>());
        break;
      case 6:
        run(std::integral_constant<int, 6>());
        break;
      case 7:
        run(std::integral_constant<int, 7>());
        break;
      default:
        run(std::integral_constant<int, 8>());
        break;
    }
    first += count;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#endif  // include toggle
