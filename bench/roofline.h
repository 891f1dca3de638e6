#pragma once

#include <benchmark/benchmark.h>

#include <initializer_list>

#include "attend/tensor/tensor.h"

namespace attend {

/// What one call of a kernel must at least do, whatever its implementation.
struct Work {
  double flops = 0;        ///< one for each +, −, ·, ÷, √, max, exp and erf of its formula
  double bytes = 0;        ///< read and written
  double working_set = 0;  ///< bytes of all operands: decides which cache they fit
  /// Whose matrix products the arithmetic is held against: the operands' for oneDNN's products,
  /// float32 for our own kernels, which compute in float32.
  DType arithmetic = DType::kFloat32;

  Work& reads(std::initializer_list<Tensor> tensors) { return touch(tensors, 1); }
  Work& writes(std::initializer_list<Tensor> tensors) { return touch(tensors, 1); }
  /// Reads and writes.
  Work& updates(std::initializer_list<Tensor> tensors) { return touch(tensors, 2); }

 private:
  Work& touch(std::initializer_list<Tensor> tensors, int times);
};

/// Times `kernel` and reports what it did. Counters: "FLOP/s"; "bytes/s"; the two limits, measured
/// just before ("limit FLOP/s": oneDNN at 1024 × 512 × 512; "limit bytes/s": a sweep over a working
/// set of the same size); and "share" of the roof, min(limit FLOP/s, limit bytes/s · intensity)
/// (Williams, Waterman & Patterson 2009, "Roofline"). All times are the thread's own CPU time, so
/// that other processes disturb little.
template <class Kernel>
void measure(benchmark::State& state, const Work& work, const Kernel& kernel);

/// The limits of this core now. Measured again when the last answer is more than two seconds old.
double arithmetic_limit(DType dtype);
double bandwidth_limit(double working_set);
/// x += 1 for `count` numbers, aligned to 64 bytes. `count` is a multiple of kSweepMultiple.
void sweep(float* x, int64_t count);
constexpr int64_t kSweepMultiple = 256;

/// CPU time of the calling thread, seconds.
double thread_seconds();
void report(benchmark::State& state, const Work& work, double seconds, double limit_flops,
            double limit_bytes);

template <class Kernel>
void measure(benchmark::State& state, const Work& work, const Kernel& kernel) {
  const double limit_flops = arithmetic_limit(work.arithmetic);
  const double limit_bytes = bandwidth_limit(work.working_set);
  const double before = thread_seconds();
  for (auto _ : state) kernel();
  report(state, work, thread_seconds() - before, limit_flops, limit_bytes);
}

}  // namespace attend
