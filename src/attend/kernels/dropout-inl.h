// Masks for dropout: Philox numbers in vectors. Included once for each instruction set.
#if defined(ATTEND_KERNELS_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_DROPOUT_INL_H_
#undef ATTEND_KERNELS_DROPOUT_INL_H_
#else
#define ATTEND_KERNELS_DROPOUT_INL_H_
#endif

#include <vector>

#include "attend/kernels/dropout.h"
#include "attend/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

using WordTag = hn::CappedTag<uint32_t, 16>;
using WordVector = hn::Vec<WordTag>;

/// High and low halves of the 64-bit products of each lane with one multiplier.
HWY_INLINE void MultiplyWide(WordVector value, WordVector multiplier, WordVector& high,
                             WordVector& low) {
  const WordTag d;
  const hn::RepartitionToWide<WordTag> wide;
  const auto even = hn::MulEven(value, multiplier);
  const auto odd =
      hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, value))), multiplier);
  low = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
  high = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
}

/// Philox4x32-10 on as many counters as there are lanes; the same numbers as philox4x32.
HWY_INLINE void Philox(WordVector (&counter)[4], uint64_t seed) {
  const WordTag d;
  const auto multiplier0 = hn::Set(d, 0xD2511F53U), multiplier1 = hn::Set(d, 0xCD9E8D57U);
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    WordVector high0, low0, high1, low1;
    MultiplyWide(counter[0], multiplier0, high0, low0);
    MultiplyWide(counter[2], multiplier1, high1, low1);
    counter[0] = hn::Xor(hn::Xor(high1, counter[1]), hn::Set(d, key0));
    counter[1] = low1;
    counter[2] = hn::Xor(hn::Xor(high0, counter[3]), hn::Set(d, key1));
    counter[3] = low0;
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
}

constexpr int64_t kDropoutGroup = 128;  ///< elements that one Philox call of 16 counters serves

inline int64_t DropoutBufferSize(int64_t columns) {
  return (columns + kDropoutGroup - 1) / kDropoutGroup * kDropoutGroup;
}

/// Draws the factors of one row: 0 where the element is dropped, else the scale. `factors` has room
/// for DropoutBufferSize(columns) floats. The same on every instruction set.
inline void DropoutRow(const Dropout& dropout, int64_t row, int64_t columns, float* factors) {
  const WordTag d;
  const FloatTag df;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto threshold = hn::Set(d, dropout.threshold());
  const auto scale = hn::Set(df, dropout.scale());
  const auto half_mask = hn::Set(d, 0xFFFFU);
  const auto put = [&](WordVector bits, float* to) {
    const auto dropped = hn::RebindMask(df, hn::Lt(bits, threshold));
    hn::StoreU(hn::IfThenZeroElse(dropped, scale), df, to);
  };
  for (int64_t group = 0; group * kDropoutGroup < columns; ++group) {
    float* out = factors + group * kDropoutGroup;
    for (int64_t first = 0; first < 16; first += lanes) {
      WordVector counter[4] = {hn::Iota(d, static_cast<uint32_t>(group * 16 + first)),
                               hn::Set(d, static_cast<uint32_t>(row)), hn::Set(d, dropout.key.op),
                               hn::Set(d, dropout.key.lane)};
      Philox(counter, dropout.key.seed);
      for (int64_t word = 0; word < 4; ++word) {
        put(hn::And(counter[word], half_mask), out + word * 32 + first);
        put(hn::ShiftRight<16>(counter[word]), out + word * 32 + 16 + first);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#endif  // include toggle
