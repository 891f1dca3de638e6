#pragma once

#include "attend/kernels/targets.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/highway.h>

namespace attend::testing {

/// The instruction sets that the kernels are compiled for and this machine has.
inline std::vector<int64_t> instruction_sets() {
#if HWY_ARCH_X86
  const std::vector<int64_t> compiled = {HWY_SSE4, HWY_AVX2, HWY_AVX3};
#else
  const std::vector<int64_t> compiled = {HWY_STATIC_TARGET};
#endif
  std::vector<int64_t> found;
  for (const int64_t target : compiled) {
    if ((hwy::SupportedTargets() & target) != 0) found.push_back(target);
  }
  return found;
}

/// Runs `test` once with each instruction set, then puts the best one back.
template <typename Test>
void for_each_instruction_set(const Test& test) {
  for (const int64_t target : instruction_sets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
    test();
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
  }
}

}  // namespace attend::testing
