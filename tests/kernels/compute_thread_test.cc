#include "attend/kernels/compute_thread.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <cfloat>
#include <thread>

namespace attend {
namespace {

/// Hidden from the compiler, which would compute with it as if no thread were prepared.
float hidden(float number) {
  volatile float kept = number;
  return kept;
}

struct Seen {
  float written = 1, read = 1;
};

Seen see_subnormals() {
  const float half = hidden(FLT_MIN) * hidden(0.5F);
  return {.written = half, .read = hidden(FLT_MIN / 4) * hidden(4.0F)};
}

TEST(ComputeThread, CountsSubnormalNumbersAsZeroInItsThreadAlone) {
  Seen elsewhere, prepared;
  std::thread([&] {
    std::fesetenv(FE_DFL_ENV);  // the test's main thread may be a prepared one
    std::thread([&] {
      prepare_compute_thread();
      prepared = see_subnormals();
    }).join();
    elsewhere = see_subnormals();
  }).join();
  EXPECT_EQ(prepared.written, 0.0F);
  EXPECT_EQ(prepared.read, 0.0F);
  EXPECT_EQ(elsewhere.written, FLT_MIN / 2);
  EXPECT_EQ(elsewhere.read, FLT_MIN);
}

}  // namespace
}  // namespace attend
