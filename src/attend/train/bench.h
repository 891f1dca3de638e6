#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/base/profile.h"
#include "attend/tensor/tensor.h"
#include "attend/train/options.h"

namespace attend {

/// What `attend bench train` measures: training steps on random tokens.
struct TrainBenchOptions {
  std::string preset = "tiny";
  TransformerConfig model;
  int64_t pairs = 128;         ///< a step
  int64_t source_length = 16;  ///< tokens, end of sentence counted
  int64_t target_length = 16;
  int64_t warmup = 3;  ///< steps that are not measured
  int64_t steps = 20;  ///< measured, after those
  int64_t lanes = 4;
  int64_t workers = 0;  ///< 0: one a core
  Precision precision = Precision::kAuto;
};

/// The batch of the published comparison for "tiny" (10 000 tokens, 128 pairs of 16 + 16) and
/// "base" (32 000 tokens, 32 pairs of 32 + 32); "big" as base.
TrainBenchOptions train_bench_options(const std::string& preset);

struct TrainBenchResult {
  std::string precision;
  int64_t workers = 0;
  double step_flops = 0;      ///< counted from the model's products, forward and backward
  double median_seconds = 0;  ///< a step
  double best_seconds = 0;
  double target_tokens_per_second = 0;  ///< by the median
  double best_target_tokens_per_second = 0;
  double achieved_flops = 0;  ///< a second, by the median
  double machine_flops = 0;   ///< the matrix library's rate on as many cores, measured here
  double utilisation = 0;     ///< achieved / machine
  int64_t peak_resident_bytes = 0;
  int64_t parameters = 0;
  std::vector<ProfileRow> profile;
};
TrainBenchResult bench_train(const TrainBenchOptions& options);

/// For people, with the profile.
std::string format(const TrainBenchOptions& options, const TrainBenchResult& result);
std::string to_json(const TrainBenchOptions& options, const TrainBenchResult& result);

/// The rates of the matrix library and of memory on this machine, for people.
std::string bench_kernels();

/// `requested` workers, or one for each core; of several ranks on this machine, for each that it
/// has for one of them. Throws UsageError beyond what makes sense.
int64_t resolve_workers(int64_t requested);

}  // namespace attend
