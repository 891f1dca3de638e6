// Rows of float or BFloat16 as pairs of float vectors: what single queries meet in a cache. A word
// holds two bfloat16 numbers, which its upper and its lower half give with no shuffle: the odd
// columns and the even ones. Included once for each instruction set.
#if defined(ATTEND_KERNELS_COLUMN_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_COLUMN_PAIRS_INL_H_
#undef ATTEND_KERNELS_COLUMN_PAIRS_INL_H_
#else
#define ATTEND_KERNELS_COLUMN_PAIRS_INL_H_
#endif

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "attend/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

constexpr int64_t kLanes = hn::MaxLanes(FloatTag());
constexpr int64_t kPair = 2 * kLanes;  ///< columns

/// kPair columns: of a bfloat16 cache the even and the odd ones, of a float32 cache the first half
/// and the second. Whatever meets such a pair is laid out in the same way.
struct Pair {
  FloatVector first, second;
};

HWY_INLINE Pair LoadWholePair(const float* from) {
  const FloatTag d;
  return {hn::LoadU(d, from), hn::LoadU(d, from + kLanes)};
}

HWY_INLINE Pair SplitWords(hn::Vec<hn::RebindToUnsigned<FloatTag>> words) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> d32;
#if HWY_COMPILER_GCC_ACTUAL && HWY_TARGET == HWY_AVX3
  asm("" : "+v"(words.raw));  // else the compiler loads the words twice, once for each half
#endif
  return {hn::BitCast(d, hn::ShiftLeft<16>(words)),
          hn::BitCast(d, hn::And(words, hn::Set(d32, 0xFFFF0000U)))};
}

HWY_INLINE Pair LoadWholePair(const BFloat16* from) {
  const hn::RebindToUnsigned<FloatTag> d32;
  const hn::Repartition<uint16_t, FloatTag> d16;
  return SplitWords(hn::BitCast(d32, hn::LoadU(d16, reinterpret_cast<const uint16_t*>(from))));
}

/// The first `count` columns of a pair, the others 0.
template <typename T>
HWY_INLINE Pair LoadPartOfPair(const T* from, int64_t count) {
#if !HWY_MEM_OPS_MIGHT_FAULT
  const auto columns = static_cast<std::size_t>(count);
  if constexpr (std::is_same_v<T, BFloat16>) {
    const hn::RebindToUnsigned<FloatTag> d32;
    const hn::Repartition<uint16_t, FloatTag> d16;
    const auto* bits = reinterpret_cast<const uint16_t*>(from);
    return SplitWords(hn::BitCast(d32, hn::MaskedLoad(hn::FirstN(d16, columns), d16, bits)));
  } else {
    const FloatTag d;
    if (count <= kLanes) return {hn::MaskedLoad(hn::FirstN(d, columns), d, from), hn::Zero(d)};
    const auto mask = hn::FirstN(d, columns - static_cast<std::size_t>(kLanes));
    return {hn::LoadU(d, from), hn::MaskedLoad(mask, d, from + kLanes)};
  }
#else
  HWY_ALIGN T padded[kPair] = {};
  std::memcpy(padded, from, static_cast<std::size_t>(count) * sizeof(T));
  return LoadWholePair(padded);
#endif
}

template <bool kWhole, typename T>
HWY_INLINE Pair LoadPair(const T* from, int64_t count) {
  if constexpr (kWhole) return LoadWholePair(from);
  return LoadPartOfPair(from, count);
}

/// Queries, laid out as a cache of T is.
template <typename T, typename TQuery>
HWY_INLINE Pair LoadWholeQueryPair(const TQuery* from) {
  const FloatTag d;
  if constexpr (std::is_same_v<T, TQuery>) return LoadWholePair(from);
  const auto low = LoadF32(d, from), high = LoadF32(d, from + kLanes);
  if constexpr (std::is_same_v<T, float>) return {low, high};
  return {hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low)};
}

/// The first `count` columns, the others 0.
template <typename T, typename TQuery>
HWY_INLINE Pair LoadQueryPair(const TQuery* from, int64_t count) {
  if (count >= kPair) return LoadWholeQueryPair<T>(from);
  HWY_ALIGN TQuery padded[kPair] = {};
  std::memcpy(padded, from, static_cast<std::size_t>(count) * sizeof(TQuery));
  return LoadWholeQueryPair<T>(padded);
}

/// A pair that is laid out as those of a cache of T.
template <typename T, typename TOut>
HWY_INLINE void StoreWholePair(const Pair& pair, TOut* to) {
  const FloatTag d;
  if constexpr (std::is_same_v<T, float>) {
    StoreF32(pair.first, d, to);
    StoreF32(pair.second, d, to + kLanes);
  } else if constexpr (std::is_same_v<TOut, float>) {
    hn::StoreInterleaved2(pair.first, pair.second, d, to);
  } else {
    HWY_ALIGN float interleaved[kPair];
    hn::StoreInterleaved2(pair.first, pair.second, d, interleaved);
    StoreF32(hn::Load(d, interleaved), d, to);
    StoreF32(hn::Load(d, interleaved + kLanes), d, to + kLanes);
  }
}

/// Its first `count` columns.
template <typename T, bool kWhole, typename TOut>
HWY_INLINE void StorePair(const Pair& pair, TOut* to, int64_t count) {
  if constexpr (kWhole) return StoreWholePair<T>(pair, to);
  HWY_ALIGN TOut padded[kPair];
  StoreWholePair<T>(pair, padded);
  std::memcpy(to, padded, static_cast<std::size_t>(count) * sizeof(TOut));
}

}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#endif  // include toggle
