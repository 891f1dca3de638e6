// Reads the sums of a ProductTile as vectors of floats. Included once for each instruction set.
#if defined(ATTEND_KERNELS_PRODUCT_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_PRODUCT_TILE_INL_H_
#undef ATTEND_KERNELS_PRODUCT_TILE_INL_H_
#else
#define ATTEND_KERNELS_PRODUCT_TILE_INL_H_
#endif

#include "attend/kernels/packed_matrix.h"
#include "attend/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

/// Of float32 and bfloat16 weights: the sums are the numbers.
class PlainSums {
 public:
  explicit PlainSums(const ProductTile& tile) : tile_(tile) {}

  struct RowReader {
    const float* sums;
    HWY_INLINE FloatVector Load(int64_t i) const { return hn::LoadU(FloatTag(), sums + i); }
    HWY_INLINE FloatVector LoadSome(int64_t i, int64_t count) const {
      return HWY_NAMESPACE::LoadSome(FloatTag(), sums + i, count);
    }
  };
  HWY_INLINE RowReader Row(int64_t row) const { return {tile_.sums + row * tile_.columns}; }

 private:
  const ProductTile& tile_;
};

/// Of int8 weights: sums · (row scale · column scale).
class ScaledSums {
 public:
  explicit ScaledSums(const ProductTile& tile) : tile_(tile) {}

  struct RowReader {
    const int32_t* sums;
    const float* column_scales;
    float row_scale;

    HWY_INLINE FloatVector Load(int64_t i) const {
      const FloatTag d;
      const hn::RebindToSigned<FloatTag> di;
      return Scaled(hn::ConvertTo(d, hn::LoadU(di, sums + i)), hn::LoadU(d, column_scales + i));
    }
    HWY_INLINE FloatVector LoadSome(int64_t i, int64_t count) const {
      const FloatTag d;
      const hn::RebindToSigned<FloatTag> di;
      HWY_ALIGN int32_t padded[hn::MaxLanes(FloatTag())] = {};
      std::memcpy(padded, sums + i, static_cast<std::size_t>(count) * sizeof(int32_t));
      return Scaled(hn::ConvertTo(d, hn::Load(di, padded)),
                    HWY_NAMESPACE::LoadSome(d, column_scales + i, count));
    }

   private:
    HWY_INLINE FloatVector Scaled(FloatVector sums_part, FloatVector scales) const {
      return hn::Mul(sums_part, hn::Mul(scales, hn::Set(FloatTag(), row_scale)));
    }
  };
  HWY_INLINE RowReader Row(int64_t row) const {
    return {tile_.int8_sums + row * tile_.columns, tile_.column_scales, tile_.row_scales[row]};
  }

 private:
  const ProductTile& tile_;
};

}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#endif  // include toggle
