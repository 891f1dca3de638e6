// Loads and stores of float vectors from rows of float or BFloat16, with short ends. Included once
// for each instruction set (see Highway's foreach_target.h).
#if defined(ATTEND_KERNELS_VECTOR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_VECTOR_INL_H_
#undef ATTEND_KERNELS_VECTOR_INL_H_
#else
#define ATTEND_KERNELS_VECTOR_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include <hwy/highway.h>

#include "attend/tensor/tensor.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// At most 16 lanes, so that every instruction set walks memory in the same groups.
using FloatTag = hn::CappedTag<float, 16>;
using FloatVector = hn::Vec<FloatTag>;

template <class D>
HWY_INLINE hn::Vec<D> LoadF32(D d, const float* from) {
  return hn::LoadU(d, from);
}

template <class D>
HWY_INLINE hn::Vec<D> LoadF32(D d, const BFloat16* from) {
  const hn::RebindToUnsigned<D> d32;
  const hn::Rebind<uint16_t, D> d16;
  const auto bits = hn::LoadU(d16, reinterpret_cast<const uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, bits)));
}

template <class D>
HWY_INLINE hn::Vec<D> LoadF32(D d, const int8_t* from) {
  const hn::RebindToSigned<D> d32;
  const hn::Rebind<int8_t, D> d8;
  return hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, from)));
}

template <class D>
HWY_INLINE void StoreF32(hn::Vec<D> value, D d, float* to) {
  hn::StoreU(value, d, to);
}

/// Rounds to the nearest, ties to even; NaN stays NaN. The same bits as to_bfloat16.
template <class D>
HWY_INLINE void StoreF32(hn::Vec<D> value, D, BFloat16* to) {
  const hn::RebindToUnsigned<D> d32;
  const hn::Rebind<uint16_t, D> d16;
  const auto bits = hn::BitCast(d32, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1U));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(d32, 0x7FFFU)));
  const auto quiet = hn::Or(bits, hn::Set(d32, 0x400000U));
  const auto nan = hn::RebindMask(d32, hn::IsNaN(value));
  const auto kept = hn::IfThenElse(nan, quiet, rounded);
  hn::StoreU(hn::TruncateTo(d16, hn::ShiftRight<16>(kept)), d16, reinterpret_cast<uint16_t*>(to));
}

/// The first `count` of a vector's lanes, the others 0; a whole vector where count allows.
template <class D, typename T>
HWY_INLINE hn::Vec<D> LoadSome(D d, const T* from, int64_t count) {
  if (count >= static_cast<int64_t>(hn::Lanes(d))) return LoadF32(d, from);
  HWY_ALIGN T padded[hn::MaxLanes(d)] = {};
  std::memcpy(padded, from, static_cast<std::size_t>(count) * sizeof(T));
  return LoadF32(d, padded);
}

template <class D, typename T>
HWY_INLINE void StoreSome(hn::Vec<D> value, D d, T* to, int64_t count) {
  if (count >= static_cast<int64_t>(hn::Lanes(d))) {
    StoreF32(value, d, to);
    return;
  }
  HWY_ALIGN T padded[hn::MaxLanes(d)];
  StoreF32(value, d, padded);
  std::memcpy(to, padded, static_cast<std::size_t>(count) * sizeof(T));
}

template <class D>
HWY_INLINE float SumLanes(D d, hn::Vec<D> value) {
  return hn::GetLane(hn::SumOfLanes(d, value));
}

}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#endif  // include toggle
