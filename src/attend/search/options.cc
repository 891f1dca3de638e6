#include "attend/search/options.h"

#include <cmath>

#include "attend/base/error.h"

namespace attend {
namespace {

constexpr int64_t kMost = int64_t{1} << 30;  // so that products of options have room

void check(const char* option, int64_t value, int64_t least, int64_t most = kMost) {
  if (value < least) {
    fail_usage("{}: found {}, expected a whole number of at least {}", option, value, least);
  }
  if (value > most) {
    fail_usage("{}: found {}, expected a whole number of at most {}", option, value, most);
  }
}

void check_number(const char* option, double value, double least) {
  if (!std::isfinite(value) || value < least) {
    fail_usage("{}: found {}, expected a number of at least {}", option, value, least);
  }
}

void validate_lengths(const SearchOptions& options) {
  check("max_extra_length", options.max_extra_length, 0);
  check("max_length", options.max_length, 0);
  check("min_length", options.min_length, 0);
  if (options.max_length > 0 && options.min_length > options.max_length) {
    fail_usage("min_length: found {}, expected at most max_length, which is {}", options.min_length,
               options.max_length);
  }
}

void validate_length_penalty(const SearchOptions& options) {
  check_number("length_penalty", options.length_penalty, 0);
  if (options.length_penalty_kind != LengthPenalty::kGnmt &&
      options.length_penalty != SearchOptions().length_penalty) {
    fail_usage(
        "length_penalty: it is alpha of length_penalty_kind gnmt, and {} has none; leave out one "
        "of the two",
        name_of(options.length_penalty_kind));
  }
}

void validate_groups(const SearchOptions& options) {
  check("beam_groups", options.beam_groups, 1, options.beam_size);
  check_number("diversity_strength", options.diversity_strength, 0);
  if (options.beam_groups == 1 &&
      options.diversity_strength != SearchOptions().diversity_strength) {
    fail_usage(
        "diversity_strength: it is an option of diverse beam search; give beam_groups as well, or "
        "leave it out");
  }
  if (options.beam_size % options.beam_groups != 0) {
    fail_usage("beam_groups: found {}, expected a divisor of beam_size, which is {}",
               options.beam_groups, options.beam_size);
  }
  if (options.sampling && options.beam_groups > 1) {
    fail_usage("beam_groups: found {} beside sampling, which has no beam; leave out one of the two",
               options.beam_groups);
  }
}

void validate_sampling(const SearchOptions& options) {
  if (!std::isfinite(options.temperature) || options.temperature <= 0) {
    fail_usage(
        "temperature: found {}, expected a number above 0; beam_size 1 without sampling "
        "takes the likeliest token",
        options.temperature);
  }
  check("sampling_top_k", options.sampling_top_k, 0);
  if (!(options.sampling_top_p > 0 && options.sampling_top_p <= 1)) {
    fail_usage("sampling_top_p: found {}, expected a number above 0 and at most 1",
               options.sampling_top_p);
  }
  if (options.sampling) return;
  const auto needs_sampling = [](const char* option) {
    fail_usage("{}: it is an option of sampling; ask for sampling as well", option);
  };
  if (options.temperature != 1) needs_sampling("temperature");
  if (options.sampling_top_k != 0) needs_sampling("sampling_top_k");
  if (options.sampling_top_p != 1) needs_sampling("sampling_top_p");
  if (options.seed != SearchOptions().seed) needs_sampling("seed");
}

}  // namespace

std::string_view name_of(LengthPenalty kind) {
  switch (kind) {
    case LengthPenalty::kGnmt:
      return "gnmt";
    case LengthPenalty::kAverage:
      return "average";
    case LengthPenalty::kNone:
      return "none";
  }
  return "";
}

std::string_view name_of(Stopping rule) {
  switch (rule) {
    case Stopping::kLikely:
      return "likely";
    case Stopping::kCertain:
      return "certain";
    case Stopping::kFirst:
      return "first";
  }
  return "";
}

void SearchOptions::validate() const {
  check("beam_size", beam_size, 1, kMostHypotheses);
  check("n_best", n_best, 1, kMostHypotheses);
  check("batch_tokens", batch_tokens, 0);
  if (!sampling && n_best > beam_size) {
    fail_usage("n_best: found {}, expected at most beam_size, which is {}; raise beam_size", n_best,
               beam_size);
  }
  validate_lengths(*this);
  validate_length_penalty(*this);
  check_number("coverage_penalty", coverage_penalty, 0);
  check_number("repetition_penalty", repetition_penalty, 1);
  check("no_repeat_ngram_size", no_repeat_ngram_size, 0);
  validate_groups(*this);
  validate_sampling(*this);
}

}  // namespace attend
