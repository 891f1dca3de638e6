// exp and tanh of float vectors. Included once for each instruction set.
#if defined(ATTEND_KERNELS_ATTENTION_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_ATTENTION_MATH_INL_H_
#undef ATTEND_KERNELS_ATTENTION_MATH_INL_H_
#else
#define ATTEND_KERNELS_ATTENTION_MATH_INL_H_
#endif

#include "attend/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

/// x = n ln 2 + r with |r| <= ln 2 / 2. exp(r) - 1 = excess; n stands in the upper bits of power,
/// where a float has its exponent.
template <class D>
struct ReducedExp {
  hn::Vec<D> excess;
  hn::Vec<hn::RebindToSigned<D>> power;
};

/// For x in [-87, 0] (Cody and Waite reduction; the polynomial is minimax of relative error 3e-9).
template <class D>
HWY_INLINE ReducedExp<D> ReduceExp(D d, hn::Vec<D> x) {
  const hn::RebindToSigned<D> di;
  const auto shifter = hn::Set(d, 12582912.0F);  // 1.5 * 2^23: the sum's low bits are the integer
  const auto shifted = hn::MulAdd(x, hn::Set(d, 1.44269504F), shifter);
  const auto n = hn::Sub(shifted, shifter);
  auto r = hn::NegMulAdd(n, hn::Set(d, 0.693359375F), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4F), r);
  auto p = hn::Set(d, 0x1.6a2434p-10F);
  p = hn::MulAdd(p, r, hn::Set(d, 0x1.1239e2p-7F));
  p = hn::MulAdd(p, r, hn::Set(d, 0x1.5558f2p-5F));
  p = hn::MulAdd(p, r, hn::Set(d, 0x1.555492p-3F));
  p = hn::MulAdd(p, r, hn::Set(d, 0x1.fffffcp-2F));
  const auto excess = hn::MulAdd(hn::Mul(r, r), p, r);
  return {excess, hn::ShiftLeft<23>(hn::BitCast(di, shifted))};
}

/// exp(x) for x <= 0, to 1.2e-7 of the value; 0 below -87, -infinity included.
template <class D>
HWY_INLINE hn::Vec<D> ExpNonPositive(D d, hn::Vec<D> x) {
  const hn::RebindToSigned<D> di;
  const auto lowest = hn::Set(d, -87.0F);
  const auto reduced = ReduceExp(d, hn::Max(lowest, x));
  const auto one_plus = hn::Add(reduced.excess, hn::Set(d, 1.0F));
  const auto value = hn::BitCast(d, hn::Add(hn::BitCast(di, one_plus), reduced.power));
  return hn::IfThenZeroElse(hn::Lt(x, lowest), value);
}

/// tanh(x) = -m / (m + 2) with m = exp(-2 |x|) - 1, which keeps its precision near 0.
template <class D>
HWY_INLINE hn::Vec<D> Tanh(D d, hn::Vec<D> x) {
  const hn::RebindToSigned<D> di;
  const auto one = hn::Set(d, 1.0F);
  const auto doubled = hn::Mul(hn::Abs(x), hn::Set(d, -2.0F));
  const auto reduced = ReduceExp(d, hn::Max(hn::Set(d, -40.0F), doubled));
  const auto power = hn::BitCast(d, hn::Add(hn::BitCast(di, one), reduced.power));
  const auto minus_one = hn::MulAdd(power, reduced.excess, hn::Sub(power, one));
  const auto magnitude = hn::Div(minus_one, hn::Add(minus_one, hn::Set(d, 2.0F)));
  return hn::CopySign(magnitude, x);
}

}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#endif  // include toggle
