#include "attend/train/bench.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "attend/base/available_memory.h"
#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/base/worker_pool.h"
#include "attend/comm/launch.h"
#include "attend/io/profile_json.h"
#include "attend/kernels/compute_thread.h"
#include "attend/kernels/gemm.h"
#include "attend/search/text_model.h"
#include "attend/train/engine.h"

namespace attend {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void append_random(Sequences& sequences, int64_t length, int64_t vocabulary,
                   RandomGenerator& random) {
  constexpr int64_t kSpecialTokens = 3;
  for (int64_t i = 0; i < length; ++i) {
    const uint64_t bound = static_cast<uint64_t>(vocabulary - kSpecialTokens);
    sequences.tokens.push_back(static_cast<int32_t>(kSpecialTokens + random.uniform_index(bound)));
  }
  sequences.offsets.push_back(static_cast<int64_t>(sequences.tokens.size()));
}

Batch random_batch(const TrainBenchOptions& options, uint64_t seed) {
  RandomGenerator random(seed);
  Batch batch;
  for (int64_t lane = 0; lane < options.lanes; ++lane) {
    Lane& made = batch.lanes.emplace_back();
    const int64_t first = options.pairs * lane / options.lanes;
    const int64_t last = options.pairs * (lane + 1) / options.lanes;
    for (int64_t pair = first; pair < last; ++pair) {
      append_random(made.source, options.source_length, options.model.source_vocabulary_size,
                    random);
      append_random(made.target_input, options.target_length, options.model.target_vocabulary_size,
                    random);
    }
    Sequences outputs;
    for (int64_t pair = first; pair < last; ++pair) {
      append_random(outputs, options.target_length, options.model.target_vocabulary_size, random);
    }
    made.target_output = outputs.tokens;
  }
  return batch;
}

/// The rate of the matrix library on as many cores as there are workers, all at once.
double machine_rate(DType dtype, WorkerPool& workers) {
  std::vector<double> rates(static_cast<std::size_t>(workers.size()));
  workers.run([&](int64_t worker) {
    rates[static_cast<std::size_t>(worker)] = measure_gemm_rate(dtype, 1.0);
  });
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
}

}  // namespace

int64_t resolve_workers(int64_t requested) {
  check_workers(requested);
  // Ranks on one machine share its cores, whether mpirun bound each to some or not.
  const int64_t cores =
      std::min(available_cores(),
               std::max<int64_t>(1, sysconf(_SC_NPROCESSORS_ONLN) / ranks_on_this_machine()));
  if (requested > cores) {
    logger().warn("{} workers on {} cores: they will take turns", requested, cores);
  }
  return requested > 0 ? requested : cores;
}

TrainBenchOptions train_bench_options(const std::string& name) {
  TrainBenchOptions options;
  options.preset = name;
  options.model = preset(name);
  const bool tiny = name == "tiny";
  options.model.source_vocabulary_size = options.model.target_vocabulary_size =
      tiny ? 10000 : 32000;
  options.pairs = tiny ? 128 : 32;
  options.source_length = options.target_length = tiny ? 16 : 32;
  return options;
}

TrainBenchResult bench_train(const TrainBenchOptions& options) {
  const DType dtype = choose_precision(options.precision);
  TrainBenchResult result;
  result.precision = name_of(dtype);
  result.workers = resolve_workers(options.workers);

  TrainOptions training;
  training.model = options.model;
  Transformer model(options.model, dtype, true);
  model.initialize(training.seed);
  result.parameters = model.parameters().weight_count();
  Engine engine(model, training, result.workers);

  std::vector<double> seconds;
  for (int64_t step = 1; step <= options.warmup + options.steps; ++step) {
    const std::vector<Batch> batches{random_batch(options, static_cast<uint64_t>(step))};
    if (step == options.warmup + 1) start_profile();
    const double before = now();
    engine.update(batches, step, 1e-4);
    if (step > options.warmup) seconds.push_back(now() - before);
  }
  stop_profile();
  result.profile = profile();
  result.peak_resident_bytes = peak_resident_bytes();
  for (const ProfileRow& row : result.profile) result.step_flops += row.flops;
  result.step_flops /= static_cast<double>(options.steps);

  std::sort(seconds.begin(), seconds.end());
  const double tokens = static_cast<double>(options.pairs * options.target_length);
  result.median_seconds = seconds[seconds.size() / 2];
  result.best_seconds = seconds.front();
  result.target_tokens_per_second = tokens / result.median_seconds;
  result.best_target_tokens_per_second = tokens / result.best_seconds;
  result.achieved_flops = result.step_flops / result.median_seconds;
  result.machine_flops = machine_rate(dtype, engine.workers());
  result.utilisation = result.achieved_flops / result.machine_flops;
  return result;
}

std::string format(const TrainBenchOptions& options, const TrainBenchResult& result) {
  constexpr double kGiga = 1e9, kMiB = 1 << 20;
  return fmt::format(
      "model               {}, {:.1f} M weights, {} + {} layers, {}\n"
      "step                {} pairs of {} + {} tokens, {:.1f} GFLOP\n"
      "workers             {}\n"
      "target tokens/s     {:.0f} (median), {:.0f} (best)\n"
      "achieved            {:.1f} GFLOP/s\n"
      "machine             {:.1f} GFLOP/s ({}, {}, 1024 x 512 x 512, {} cores)\n"
      "utilisation         {:.1f}%\n"
      "peak memory         {:.0f} MiB\n\n{}",
      options.preset, static_cast<double>(result.parameters) * 1e-6, options.model.encoder_layers,
      options.model.decoder_layers, result.precision, options.pairs, options.source_length,
      options.target_length, result.step_flops / kGiga, result.workers,
      result.target_tokens_per_second, result.best_target_tokens_per_second,
      result.achieved_flops / kGiga, result.machine_flops / kGiga, name_gemm_library(),
      result.precision, result.workers, 100 * result.utilisation,
      static_cast<double>(result.peak_resident_bytes) / kMiB, format_profile(result.profile));
}

std::string to_json(const TrainBenchOptions& options, const TrainBenchResult& result) {
  nlohmann::ordered_json json{
      {"preset", options.preset},
      {"precision", result.precision},
      {"workers", result.workers},
      {"parameters", result.parameters},
      {"step_flops", result.step_flops},
      {"median_seconds", result.median_seconds},
      {"best_seconds", result.best_seconds},
      {"target_tokens_per_second", result.target_tokens_per_second},
      {"best_target_tokens_per_second", result.best_target_tokens_per_second},
      {"achieved_flops", result.achieved_flops},
      {"machine_flops", result.machine_flops},
      {"utilisation", result.utilisation},
      {"peak_resident_bytes", result.peak_resident_bytes}};
  json["profile"] = profile_json(result.profile);
  return json.dump();
}

std::string bench_kernels() {
  std::string text = fmt::format("{}\n", name_gemm_library());
  const int64_t cores = available_cores();
  for (const int64_t workers : {int64_t{1}, cores}) {
    WorkerPool pool(workers, prepare_compute_thread);
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      text += fmt::format("1024 x 512 x 512 {:<9} {} core{} {:>8.1f} GFLOP/s\n", name_of(dtype),
                          workers, workers == 1 ? " " : "s", machine_rate(dtype, pool) * 1e-9);
    }
    if (cores == 1) break;
  }
  return text;
}

}  // namespace attend
