#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "attend/base/profile.h"
#include "attend/search/translator.h"

namespace attend {

/// What `attend bench translate` measures.
struct TranslateBenchOptions {
  TranslatorOptions translator;
  int64_t copies = 1;       ///< the text is translated so many times over in one repetition
  int64_t repetitions = 5;  ///< after one that is not measured
  int64_t singles = 200;    ///< lines that are also translated one by one, at most
  void validate() const;    ///< throws UsageError naming the option
};

struct TranslateBenchResult {
  std::string precision;
  int64_t workers = 0;
  double load_seconds = 0;          ///< from the files to a Translator
  TranslationCounts counts;         ///< of one repetition
  std::vector<double> seconds;      ///< of each repetition, least first
  std::vector<double> latencies;    ///< seconds of each single line, least first
  int64_t peak_resident_bytes = 0;  ///< of the process
  /// FLOP/s (or int8 operations) that the matrix library reaches in this precision on as many cores
  /// as there are workers, all at once.
  double machine_rate = 0;
  std::vector<double> starts;  ///< seconds from a process's start to its first translation, sorted
  std::vector<ProfileRow> profile;  ///< of one more pass, summed over the workers

  double sentences_per_second() const;      ///< of the median repetition
  double target_tokens_per_second() const;  ///< of the median repetition
  /// The share of the machine's rate that the products of all repetitions reached.
  double utilisation() const;
  /// The latency that a share of `quantile` of the single lines keep within; 0 where there is none.
  double latency(double quantile) const;
};

/// Translates `lines` with the model in `model`: all together over and over, then one by one.
/// Throws as Translator does, and Error where there are no lines.
TranslateBenchResult bench_translate(const std::filesystem::path& model,
                                     const std::vector<std::string>& lines,
                                     const TranslateBenchOptions& options);

/// For people, with the profile.
std::string format(const TranslateBenchResult& result);
std::string to_json(const TranslateBenchResult& result);

}  // namespace attend
