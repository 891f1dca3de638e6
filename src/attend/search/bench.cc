#include "attend/search/bench.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "attend/base/available_memory.h"
#include "attend/base/error.h"
#include "attend/io/profile_json.h"
#include "attend/kernels/compute_thread.h"
#include "attend/kernels/packed_matrix.h"
#include "attend/tensor/tensor.h"

namespace attend {
namespace {

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

double machine_rate(DType dtype, int64_t workers) {
  std::atomic<double> sum = 0;
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < workers; ++i) {
    threads.emplace_back([&] {
      prepare_compute_thread();
      sum += measure_packed_rate(dtype);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return sum;
}

double median(const std::vector<double>& sorted) { return sorted[sorted.size() / 2]; }

}  // namespace

void TranslateBenchOptions::validate() const {
  static constexpr int64_t kMost = 1'000'000;
  const auto within = [](const char* name, int64_t value, int64_t least) {
    if (value < least || value > kMost) {
      fail_usage("{}: found {}, expected from {} to {}", name, value, least, kMost);
    }
  };
  translator.validate();
  within("copies", copies, 1);
  within("repetitions", repetitions, 1);
  within("singles", singles, 0);
}

double TranslateBenchResult::sentences_per_second() const {
  return static_cast<double>(counts.lines) / median(seconds);
}

double TranslateBenchResult::target_tokens_per_second() const {
  return static_cast<double>(counts.target_tokens) / median(seconds);
}

double TranslateBenchResult::latency(double quantile) const {
  if (latencies.empty()) return 0;
  const double rank = std::ceil(quantile * static_cast<double>(latencies.size()));
  return latencies[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

double TranslateBenchResult::utilisation() const {
  double flops = 0;
  for (const ProfileRow& row : profile) flops += row.flops;
  return seconds.empty() ? 0 : flops / median(seconds) / machine_rate;
}

TranslateBenchResult bench_translate(const std::filesystem::path& model,
                                     const std::vector<std::string>& lines,
                                     const TranslateBenchOptions& options) {
  options.validate();
  if (lines.empty()) fail("there are no lines to translate");
  TranslateBenchResult result;
  const Stopwatch loading;
  const Translator translator(model, options.translator);
  result.load_seconds = loading.seconds();
  result.precision = name_of(translator.precision());
  result.workers = translator.workers();

  std::vector<std::string> text;
  for (int64_t copy = 0; copy < options.copies; ++copy) {
    text.insert(text.end(), lines.begin(), lines.end());
  }
  translator.translate(text);  // whatever is made once
  for (int64_t i = 0; i < options.repetitions; ++i) {
    result.counts = {};
    const Stopwatch watch;
    translator.translate(text, &result.counts);
    result.seconds.push_back(watch.seconds());
  }
  start_profile();
  translator.translate(text);
  stop_profile();
  result.profile = profile();
  result.machine_rate = machine_rate(translator.precision(), result.workers);
  for (std::size_t i = 0; i < lines.size() && std::ssize(result.latencies) < options.singles; ++i) {
    const Stopwatch watch;
    translator.translate_line(lines[i]);
    result.latencies.push_back(watch.seconds());
  }
  std::sort(result.seconds.begin(), result.seconds.end());
  std::sort(result.latencies.begin(), result.latencies.end());
  result.peak_resident_bytes = peak_resident_bytes();
  return result;
}

namespace {

std::string describe_starts(const TranslateBenchResult& result) {
  if (result.starts.empty()) return "";
  return fmt::format("start to first line {:.1f} ms (median of {} processes, one worker)\n",
                     1e3 * median(result.starts), result.starts.size());
}

}  // namespace

std::string format(const TranslateBenchResult& result) {
  constexpr double kMilli = 1e3, kMiB = 1 << 20;
  const auto per_second = [&](double seconds) {
    return static_cast<double>(result.counts.lines) / seconds;
  };
  return fmt::format(
      "text                {} lines, {} target tokens, {} times\n"
      "workers             {}, {}\n"
      "sentences/s         {:.0f} (median), {:.0f} to {:.0f}\n"
      "target tokens/s     {:.0f} (median)\n"
      "one by one          {:.2f} ms (median), {:.2f} (95%), {:.2f} (99%), {} lines\n"
      "loading             {:.1f} ms\n"
      "{}"
      "peak memory         {:.0f} MiB\n"
      "utilisation         {:.0f}% of {:.0f} GOP/s in matrix products\n\n{}",
      result.counts.lines, result.counts.target_tokens, result.seconds.size(), result.workers,
      result.precision, result.sentences_per_second(), per_second(result.seconds.back()),
      per_second(result.seconds.front()), result.target_tokens_per_second(),
      kMilli * result.latency(0.5), kMilli * result.latency(0.95), kMilli * result.latency(0.99),
      result.latencies.size(), kMilli * result.load_seconds, describe_starts(result),
      static_cast<double>(result.peak_resident_bytes) / kMiB, 1e2 * result.utilisation(),
      1e-9 * result.machine_rate, format_profile(result.profile));
}

std::string to_json(const TranslateBenchResult& result) {
  nlohmann::ordered_json json{{"precision", result.precision},
                              {"workers", result.workers},
                              {"lines", result.counts.lines},
                              {"source_tokens", result.counts.source_tokens},
                              {"target_tokens", result.counts.target_tokens},
                              {"seconds", result.seconds},
                              {"sentences_per_second", result.sentences_per_second()},
                              {"target_tokens_per_second", result.target_tokens_per_second()},
                              {"latency_p50", result.latency(0.5)},
                              {"latency_p95", result.latency(0.95)},
                              {"latency_p99", result.latency(0.99)},
                              {"load_seconds", result.load_seconds},
                              {"start_seconds", result.starts},
                              {"utilisation", result.utilisation()},
                              {"machine_rate", result.machine_rate},
                              {"peak_resident_bytes", result.peak_resident_bytes}};
  json["profile"] = profile_json(result.profile);
  return json.dump();
}

}  // namespace attend
