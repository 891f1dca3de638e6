// Which instruction sets the vector kernels are compiled for: the platform's baseline and, on x86,
// AVX2 and AVX-512. Include before any Highway header. No guard against repeated inclusion is
// needed beyond the usual one: it only defines a macro.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_AVX3_ZEN4)
