#include "attend/kernels/compute_thread.h"

#include <omp.h>

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace attend {
namespace {

void count_subnormals_as_zero() {
#if defined(__x86_64__)
  _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
  constexpr unsigned kDenormalsAreZero = 0x40;
  _mm_setcsr(_mm_getcsr() | kDenormalsAreZero);
#elif defined(__aarch64__)
  constexpr uint64_t kFlushToZero = uint64_t{1} << 24;
  uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  asm volatile("msr fpcr, %0" : : "r"(control | kFlushToZero));
#endif
}

}  // namespace

void prepare_compute_thread() {
  omp_set_num_threads(1);
  count_subnormals_as_zero();
}

}  // namespace attend
