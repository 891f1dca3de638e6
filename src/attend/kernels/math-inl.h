// Transcendental functions of vectors. Included once for each instruction set.
#if defined(ATTEND_KERNELS_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_MATH_INL_H_
#undef ATTEND_KERNELS_MATH_INL_H_
#else
#define ATTEND_KERNELS_MATH_INL_H_
#endif

#include "attend/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

/// e^x to about 1 ulp: 2^n · e^r with n = round(x / ln 2) and a polynomial of degree 6 for
/// |r| ≤ ln 2 / 2. Below -87.3 (and for -inf) 0; above 88.7 +inf; NaN stays NaN.
HWY_INLINE FloatVector Exp(FloatVector x) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const auto high = hn::Set(d, 88.72283F), low = hn::Set(d, -87.33654F);
  const auto clamped = hn::Max(hn::Min(x, high), low);
  const auto n = hn::Round(hn::Mul(clamped, hn::Set(d, 1.44269504089F)));
  auto r = hn::NegMulAdd(n, hn::Set(d, 0.693359375F), clamped);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4F), r);
  auto p = hn::Set(d, 1.0F / 720);
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F / 120));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F / 24));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F / 6));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F));
  // 2^n in two factors, since n reaches 128 where one exponent does not.
  const auto whole = hn::ConvertTo(di, n);
  const auto half = hn::ShiftRight<1>(whole);
  const auto power = [&](hn::Vec<decltype(di)> e) {
    return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(e, hn::Set(di, 127))));
  };
  auto result = hn::Mul(hn::Mul(p, power(half)), power(hn::Sub(whole, half)));
  result = hn::IfThenZeroElse(hn::Lt(x, low), result);
  result = hn::IfThenElse(hn::Gt(x, high), hn::Inf(d), result);
  return hn::IfThenElse(hn::IsNaN(x), x, result);
}

HWY_INLINE FloatVector Sigmoid(FloatVector x) {
  const FloatTag d;
  const auto one = hn::Set(d, 1.0F);
  return hn::Div(one, hn::Add(one, Exp(hn::Neg(x))));
}

/// Φ(x), the standard normal distribution function, to about 2e-7: Abramowitz & Stegun 7.1.26 with
/// the complementary error function on |x| / √2.
HWY_INLINE FloatVector NormalCdf(FloatVector x) {
  const FloatTag d;
  const auto one = hn::Set(d, 1.0F);
  const auto z = hn::Mul(hn::Abs(x), hn::Set(d, 0.70710678118F));
  const auto t = hn::Div(one, hn::MulAdd(z, hn::Set(d, 0.3275911F), one));
  auto p = hn::Set(d, 1.061405429F);
  p = hn::MulAdd(p, t, hn::Set(d, -1.453152027F));
  p = hn::MulAdd(p, t, hn::Set(d, 1.421413741F));
  p = hn::MulAdd(p, t, hn::Set(d, -0.284496736F));
  p = hn::MulAdd(p, t, hn::Set(d, 0.254829592F));
  const auto complement = hn::Mul(hn::Mul(p, t), Exp(hn::Neg(hn::Mul(z, z))));
  const auto upper = hn::Mul(complement, hn::Set(d, 0.5F));  // Φ(-|x|)
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), upper, hn::Sub(one, upper));
}

}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#endif  // include toggle
