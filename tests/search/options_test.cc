#include "attend/search/options.h"

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

TEST(SearchOptions, ErrorsNameTheOption) {
  const auto complaint = [](SearchOptions options) -> std::string {
    try {
      options.validate();
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  SearchOptions options;
  options.beam_size = 0;
  EXPECT_EQ(complaint(options), "beam_size: found 0, expected a whole number of at least 1");
  options.beam_size = 1001;
  EXPECT_EQ(complaint(options), "beam_size: found 1001, expected a whole number of at most 1000");
  options = {};
  options.n_best = 5;
  EXPECT_EQ(complaint(options),
            "n_best: found 5, expected at most beam_size, which is 4; raise beam_size");
  options = {};
  options.length_penalty = -1;
  EXPECT_EQ(complaint(options), "length_penalty: found -1, expected a number of at least 0");
  options = {};
  options.batch_tokens = 0;
  EXPECT_NE(complaint(options), "");
  options = {};
  options.max_extra_length = -1;
  EXPECT_NE(complaint(options), "");
  options = {};
  options.batch_tokens = int64_t{1} << 31;
  EXPECT_EQ(complaint(options),
            "batch_tokens: found 2147483648, expected a whole number of at most 1073741824");
}

}  // namespace
}  // namespace attend
