#include "attend/search/options.h"

#include <cmath>

#include <gtest/gtest.h>

#include "attend/base/error.h"

namespace attend {
namespace {

TEST(SearchOptions, TheDefaultsAreThePapers) {
  const SearchOptions options;
  options.validate();
  EXPECT_EQ(options.beam_size, 4);
  EXPECT_EQ(options.length_penalty, 0.6);
  EXPECT_EQ(options.max_extra_length, 50);
}

std::string complaint(const SearchOptions& options) {
  try {
    options.validate();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(SearchOptions, ErrorsNameTheOption) {
  EXPECT_EQ(complaint({.beam_size = 0}),
            "beam_size: found 0, expected a whole number of at least 1");
  EXPECT_EQ(complaint({.beam_size = 1001}),
            "beam_size: found 1001, expected a whole number of at most 1000");
  EXPECT_EQ(complaint({.n_best = 5}),
            "n_best: found 5, expected at most beam_size, which is 4; raise beam_size");
  EXPECT_EQ(complaint({.length_penalty = -1}),
            "length_penalty: found -1, expected a number of at least 0");
  EXPECT_EQ(complaint({.batch_tokens = int64_t{1} << 31}),
            "batch_tokens: found 2147483648, expected a whole number of at most 1073741824");
  EXPECT_EQ(complaint({.repetition_penalty = 0.9}),
            "repetition_penalty: found 0.9, expected a number of at least 1");
  EXPECT_EQ(complaint({.sampling = true, .sampling_top_p = 0}),
            "sampling_top_p: found 0, expected a number above 0 and at most 1");
  const auto names = [](const SearchOptions& options, const std::string& option) {
    EXPECT_EQ(complaint(options).substr(0, option.size() + 2), option + ": ");
  };
  names({.batch_tokens = -1}, "batch_tokens");
  names({.max_extra_length = -1}, "max_extra_length");
  names({.max_length = -1}, "max_length");
  names({.min_length = -1}, "min_length");
  names({.coverage_penalty = -0.1}, "coverage_penalty");
  names({.no_repeat_ngram_size = -1}, "no_repeat_ngram_size");
  names({.beam_groups = 0}, "beam_groups");
  names({.beam_groups = 5}, "beam_groups");
  names({.diversity_strength = NAN}, "diversity_strength");
  names({.sampling = true, .temperature = 0}, "temperature");
  names({.sampling = true, .sampling_top_k = -1}, "sampling_top_k");
}

TEST(SearchOptions, ContradictionsNameBoth) {
  EXPECT_EQ(complaint({.max_length = 3, .min_length = 4}),
            "min_length: found 4, expected at most max_length, which is 3");
  EXPECT_EQ(complaint({.beam_size = 6, .beam_groups = 4}),
            "beam_groups: found 4, expected a divisor of beam_size, which is 6");
  EXPECT_EQ(complaint({.beam_groups = 2, .sampling = true}),
            "beam_groups: found 2 beside sampling, which has no beam; leave out one of the two");
  for (const SearchOptions& options :
       {SearchOptions{.temperature = 2}, SearchOptions{.sampling_top_k = 5},
        SearchOptions{.sampling_top_p = 0.5}, SearchOptions{.seed = 7}}) {
    EXPECT_NE(complaint(options).find(": it is an option of sampling"), std::string::npos);
  }
}

TEST(SearchOptions, AnOptionThatWouldDoNothingIsAnError) {
  EXPECT_EQ(complaint({.diversity_strength = 0.7}),
            "diversity_strength: it is an option of diverse beam search; give beam_groups as well, "
            "or leave it out");
  EXPECT_EQ(complaint({.beam_groups = 2, .diversity_strength = 0.7}), "");
  EXPECT_EQ(complaint({.sampling = true, .seed = 7}), "");
  EXPECT_EQ(complaint({.length_penalty_kind = LengthPenalty::kAverage, .length_penalty = 1}),
            "length_penalty: it is alpha of length_penalty_kind gnmt, and average has none; leave "
            "out one of the two");
  EXPECT_EQ(complaint({.length_penalty_kind = LengthPenalty::kNone}), "");
}

TEST(SearchOptions, AsManySamplesAsAreAskedFor) {
  EXPECT_EQ(complaint({.n_best = 9, .sampling = true}), "");
  EXPECT_EQ((SearchOptions{.n_best = 9, .sampling = true}.hypotheses()), 9);
  EXPECT_EQ((SearchOptions{.beam_size = 8, .n_best = 2}.hypotheses()), 8);
}

}  // namespace
}  // namespace attend
