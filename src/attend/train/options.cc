#include "attend/train/options.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "attend/base/error.h"

namespace attend {
namespace {

template <typename Value, size_t kSize>
using Names = std::array<std::pair<Value, std::string_view>, kSize>;

constexpr Names<OptimizerKind, 2> kOptimizers = {
    {{OptimizerKind::kAdam, "adam"}, {OptimizerKind::kAdamW, "adamw"}}};
constexpr Names<Schedule, 4> kSchedules = {{{Schedule::kPaper, "paper"},
                                            {Schedule::kInverseSqrt, "inverse_sqrt"},
                                            {Schedule::kLinear, "linear"},
                                            {Schedule::kConstant, "constant"}}};
constexpr Names<ValidationMetric, 4> kValidationMetrics = {
    {{ValidationMetric::kLoss, "loss"},
     {ValidationMetric::kPerplexity, "perplexity"},
     {ValidationMetric::kBleu, "bleu"},
     {ValidationMetric::kChrf, "chrf"}}};

template <typename Value, size_t kSize>
std::string_view find_name(const Names<Value, kSize>& names, Value value) {
  for (const auto& [candidate, name] : names) {
    if (candidate == value) return name;
  }
  return "?";
}

template <typename Value, size_t kSize>
Value find_value(const Names<Value, kSize>& names, std::string_view text) {
  std::string known;
  for (const auto& [value, name] : names) {
    if (name == text) return value;
    known += known.empty() ? "" : ", ";
    known += name;
  }
  fail_usage("found \"{}\", expected one of {}", text, known);
}

/// Reads the number at the start of `text` and removes it. False where there is none, or one below
/// zero or not finite.
bool take_number(std::string_view& text, double& number) {
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

double take_multiplier(std::string_view& text) {
  const double multiplier = text.starts_with('K')   ? 1e3
                            : text.starts_with('M') ? 1e6
                            : text.starts_with('G') ? 1e9
                                                    : 1.0;
  if (multiplier > 1.0) text.remove_prefix(1);
  return multiplier;
}

/// Sizes are exact in a double up to here.
constexpr double kLargestExact = 0x1p53;

[[noreturn]] void fail_too_large(std::string_view text, int64_t most, std::string_view expected) {
  fail_usage("found \"{}\", which is too large: at most {} can be counted; expected {}", text, most,
             expected);
}

/// `number`, which `text` spells, as an integer.
int64_t whole(double number, std::string_view text, std::string_view expected) {
  if (number > kLargestExact) fail_too_large(text, static_cast<int64_t>(kLargestExact), expected);
  if (number != std::floor(number)) {
    fail_usage("found \"{}\", which is no whole number; expected {}", text, expected);
  }
  return static_cast<int64_t>(number);
}

std::string shortened(int64_t count) {
  if (count > 0 && count % 1'000'000'000 == 0) return fmt::format("{}G", count / 1'000'000'000);
  if (count > 0 && count % 1'000'000 == 0) return fmt::format("{}M", count / 1'000'000);
  if (count > 0 && count % 1'000 == 0) return fmt::format("{}K", count / 1'000);
  return fmt::format("{}", count);
}

}  // namespace

std::string_view name_of(OptimizerKind value) { return find_name(kOptimizers, value); }
std::string_view name_of(Schedule value) { return find_name(kSchedules, value); }
std::string_view name_of(ValidationMetric value) { return find_name(kValidationMetrics, value); }
OptimizerKind parse_optimizer(std::string_view name) { return find_value(kOptimizers, name); }
Schedule parse_schedule(std::string_view name) { return find_value(kSchedules, name); }
ValidationMetric parse_validation_metric(std::string_view name) {
  return find_value(kValidationMetrics, name);
}

int64_t parse_count(std::string_view text) {
  constexpr std::string_view kExpected = "a whole number, such as 4096, 4K or 2M";
  // Plain integers take the exact road: all 64 bits.
  int64_t exact = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exact);
  const bool all = end == text.data() + text.size() && !text.empty();
  if (all && error == std::errc()) return exact;
  if (all && error == std::errc::result_out_of_range) fail_too_large(text, INT64_MAX, kExpected);

  std::string_view rest = text;
  double number = 0;
  if (take_number(rest, number)) {
    number *= take_multiplier(rest);
    if (rest.empty() && text.find_first_of("KMG") != std::string_view::npos) {
      return whole(number, text, kExpected);
    }
  }
  fail_usage("found \"{}\", expected {}", text, kExpected);
}

TrainLimit parse_train_limit(std::string_view text) {
  constexpr std::string_view kExpected =
      "an amount such as 10e (epochs), 5Ku (updates), 2Gt (target tokens), 45s, 30m, 2h, or none";
  if (text == "none") return {};
  std::string_view rest = text;
  double number = 0;
  if (take_number(rest, number)) {
    const double multiplier = take_multiplier(rest);
    const bool counts = rest == "u" || rest == "t";
    const bool measures = rest == "e" || rest == "s" || rest == "m" || rest == "h";
    if ((counts || measures) && number == 0) {
      fail_usage("found \"{}\", which is nothing; expected more than 0, or none for no limit",
                 text);
    }
    if (rest == "u") return {.updates = whole(number * multiplier, text, kExpected)};
    if (rest == "t") return {.tokens = whole(number * multiplier, text, kExpected)};
    if (measures && multiplier > 1.0) {
      fail_usage("found \"{}\": K, M and G go with u and t alone; expected {}", text, kExpected);
    }
    if (rest == "e") return {.epochs = number};
    if (rest == "s") return {.seconds = number};
    if (rest == "m") return {.seconds = number * 60};
    if (rest == "h") return {.seconds = number * 3600};
  }
  fail_usage("found \"{}\", expected {}", text, kExpected);
}

std::string to_string(const TrainLimit& limit) {
  if (limit.epochs) return fmt::format("{}e", *limit.epochs);
  if (limit.updates) return shortened(*limit.updates) + "u";
  if (limit.tokens) return shortened(*limit.tokens) + "t";
  if (limit.seconds) return fmt::format("{}s", *limit.seconds);
  return "none";
}

MemoryLimit parse_memory_limit(std::string_view text) {
  constexpr std::string_view kExpected = "a size such as 512M, 4G (powers of 1024), or none";
  if (text == "none") return {};
  std::string_view rest = text;
  double number = 0;
  if (take_number(rest, number)) {
    const double unit = rest == "K" ? 0x1p10 : rest == "M" ? 0x1p20 : rest == "G" ? 0x1p30 : 1.0;
    if (rest.empty() || unit > 1.0) {
      if (number == 0) {
        fail_usage("found \"{}\", which is nothing; expected more than 0, or none for no bound",
                   text);
      }
      return {whole(number * unit, text, kExpected)};
    }
  }
  fail_usage("found \"{}\", expected {}", text, kExpected);
}

std::string to_string(const MemoryLimit& limit) {
  if (limit.bytes == 0) return "none";
  for (const auto& [shift, unit] : {std::pair(30, 'G'), {20, 'M'}, {10, 'K'}}) {
    if (limit.bytes % (int64_t{1} << shift) == 0) {
      return fmt::format("{}{}", limit.bytes >> shift, unit);
    }
  }
  return fmt::format("{}", limit.bytes);
}

}  // namespace attend
