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

/// Of int8 weights: (sum - zero · column sum) · (row scale · column scale).
class ScaledSums {
 public:
  explicit ScaledSums(const ProductTile& tile) : tile_(tile) {}

  struct RowReader {
    const int32_t* sums;
    const float* column_sums;
    const float* column_scales;
    QuantizedRow how;

    HWY_INLINE FloatVector Load(int64_t i) const {
      const FloatTag d;
      const hn::RebindToSigned<FloatTag> di;
      return Scaled(hn::LoadU(di, sums + i), hn::LoadU(d, column_sums + i),
                    hn::LoadU(d, column_scales + i));
    }
    HWY_INLINE FloatVector LoadSome(int64_t i, int64_t count) const {
      const FloatTag d;
      return Scaled(LoadInts(sums + i, count), HWY_NAMESPACE::LoadSome(d, column_sums + i, count),
                    HWY_NAMESPACE::LoadSome(d, column_scales + i, count));
    }

   private:
    using IntTag = hn::RebindToSigned<FloatTag>;
    static HWY_INLINE hn::Vec<IntTag> LoadInts(const int32_t* from, int64_t count) {
      HWY_ALIGN int32_t padded[hn::MaxLanes(FloatTag())] = {};
      std::memcpy(padded, from, static_cast<std::size_t>(count) * sizeof(int32_t));
      return hn::Load(IntTag(), padded);
    }
    HWY_INLINE FloatVector Scaled(hn::Vec<IntTag> sum, FloatVector column_sum,
                                  FloatVector scales) const {
      const FloatTag d;
      const auto zero = hn::Set(d, how.zero);
      const auto centred = hn::NegMulAdd(zero, column_sum, hn::ConvertTo(d, sum));
      return hn::Mul(centred, hn::Mul(scales, hn::Set(d, how.scale)));
    }
  };
  HWY_INLINE RowReader Row(int64_t row) const {
    return {tile_.int8_sums + row * tile_.columns, tile_.column_sums, tile_.column_scales,
            tile_.quantized_rows[row]};
  }

 private:
  const ProductTile& tile_;
};

}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#endif  // include toggle
