// Which instruction sets the vector kernels are compiled for: the platform's baseline (on x86,
// SSE4: see src/attend/CMakeLists.txt) and, on x86, AVX2 and AVX-512. Include before any Highway
// header.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#define HWY_DISABLE_PCLMUL_AES 1
