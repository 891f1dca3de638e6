// The bandwidth that the kernels are held against, by the widest vectors of the machine.
#include "bench/roofline.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/sweep.cc"
#include "attend/kernels/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void Sweep(float* x, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto one = hn::Set(d, 1.0F);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count; i += 4 * lanes) {
    for (int64_t part = 0; part < 4; ++part) {
      float* at = x + i + part * lanes;
      hn::Store(hn::Add(hn::Load(d, at), one), d, at);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend {

HWY_EXPORT(Sweep);

void sweep(float* x, int64_t count) { HWY_DYNAMIC_DISPATCH(Sweep)(x, count); }

}  // namespace attend
#endif  // HWY_ONCE
