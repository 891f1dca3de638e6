#include "bench/roofline.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "attend/kernels/gemm.h"

namespace attend {
namespace {

using Clock = std::chrono::steady_clock;

/// Beyond this every sweep runs at the speed of memory: a larger one would tell nothing more.
constexpr double kLargestSweep = 256 << 20;
constexpr double kSmallestSweep = 4096;

struct Limit {
  double rate = 0;
  Clock::time_point measured;
};

/// The least CPU time of `job` in `seconds` of trying.
template <class Job>
double best_seconds(double seconds, const Job& job) {
  job();
  const double start = thread_seconds();
  double best = 1e30;
  do {
    const double before = thread_seconds();
    job();
    best = std::min(best, thread_seconds() - before);
  } while (thread_seconds() - start < seconds);
  return best;
}

double measure_products(DType dtype) {
  const Tensor a = Tensor::zeros({1024, 512}, dtype), b = Tensor::zeros({512, 512}, dtype);
  const Tensor c({1024, 512}, DType::kFloat32);
  return 2.0 * 1024 * 512 * 512 /
         best_seconds(0.1, [&] { gemm(a, Transpose::kNo, b, Transpose::kYes, c); });
}

/// Bytes a second, read and written, in a working set of `bytes`.
double measure_sweep(int64_t bytes) {
  constexpr int64_t kTimed = int64_t{1} << 20;  // bytes between two looks at the clock
  const int64_t count = std::max<int64_t>(1, bytes / 4 / kSweepMultiple) * kSweepMultiple;
  const Tensor swept = Tensor::zeros({count}, DType::kFloat32);
  const int64_t times = std::max<int64_t>(1, kTimed / swept.bytes());
  const double seconds = best_seconds(0.05, [&] {
    for (int64_t i = 0; i < times; ++i) sweep(swept.data<float>(), count);
  });
  return 2.0 * static_cast<double>(times * swept.bytes()) / seconds;
}

/// The rate known for `key`, or `measured()` where that is missing or old.
template <class Key, class Measure>
double remember(std::map<Key, Limit>& limits, Key key, const Measure& measured) {
  constexpr std::chrono::seconds kFresh{2};
  Limit& limit = limits[key];
  if (limit.rate == 0 || Clock::now() - limit.measured > kFresh) {
    limit.rate = measured();
    limit.measured = Clock::now();
  }
  return limit.rate;
}

}  // namespace

Work& Work::touch(std::initializer_list<Tensor> tensors, int times) {
  for (const Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    bytes += times * static_cast<double>(tensor.bytes());
    working_set += static_cast<double>(tensor.bytes());
  }
  return *this;
}

double arithmetic_limit(DType dtype) {
  static std::map<DType, Limit> limits;
  return remember(limits, dtype, [&] { return measure_products(dtype); });
}

double bandwidth_limit(double working_set) {
  static std::map<int64_t, Limit> limits;
  const auto bytes = static_cast<int64_t>(std::clamp(working_set, kSmallestSweep, kLargestSweep));
  return remember(limits, bytes, [&] { return measure_sweep(bytes); });
}

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void report(benchmark::State& state, const Work& work, double seconds, double limit_flops,
            double limit_bytes) {
  using benchmark::Counter;
  const double at_roof = std::max(work.flops / limit_flops, work.bytes / limit_bytes);
  state.counters["FLOP/s"] = Counter(work.flops, Counter::kIsIterationInvariantRate);
  state.counters["bytes/s"] = Counter(work.bytes, Counter::kIsIterationInvariantRate);
  state.counters["limit FLOP/s"] = Counter(limit_flops);
  state.counters["limit bytes/s"] = Counter(limit_bytes);
  state.counters["share"] = Counter(at_roof * static_cast<double>(state.iterations()) / seconds);
}

}  // namespace attend
