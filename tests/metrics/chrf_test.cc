#include "attend/metrics/chrf.h"

#include <gtest/gtest.h>

#include "attend/base/error.h"

namespace attend {
namespace {

// "abc" against "abd": 2 of 3 unigrams, 1 of 2 bigrams, 0 of 1 trigrams; no order above 3 counts.
TEST(Chrf, IsWhatOneComputesByHand) {
  const ChrfScore score = corpus_chrf({"abc"}, {{"abd"}});
  EXPECT_NEAR(score.value, 100 * (2.0 / 3 + 1.0 / 2 + 0) / 3, 1e-9);
  EXPECT_EQ(score.format(),
            "chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:attend-0.1.0 = 38.9");
}

// Precision 1, recall 2/4, 1/3: beta 2 gives 5 P R / (4 P + R) of their means over orders 1 and 2.
TEST(Chrf, BetaWeighsRecall) {
  const double recall = (2.0 / 4 + 1.0 / 3) / 2;
  EXPECT_NEAR(corpus_chrf({"ab"}, {{"abcd"}}).value, 100 * 5 * recall / (4 + recall), 1e-9);
  ChrfOptions options;
  options.beta = 1;
  EXPECT_NEAR(corpus_chrf({"ab"}, {{"abcd"}}, options).value, 100 * 2 * recall / (1 + recall),
              1e-9);
}

TEST(Chrf, CountsCharactersNotBytesAndIgnoresSpaces) {
  EXPECT_NEAR(corpus_chrf({"ä ö\u3000ü"}, {{"äöü"}}).value, 100, 1e-9);
  // 1 of 2 characters; bytes would share 3 of 4.
  EXPECT_NEAR(corpus_chrf({"äö"}, {{"äü"}}).value, 100 * (1.0 / 2 + 0) / 2, 1e-9);
  ChrfOptions with_spaces;
  with_spaces.whitespace = true;
  EXPECT_LT(corpus_chrf({"a b"}, {{"ab"}}, with_spaces).value, 100);
}

TEST(Chrf, WordsComeApartFromPunctuation) {
  ChrfOptions words;
  words.char_order = 0;
  words.word_order = 2;
  EXPECT_NEAR(corpus_chrf({"(hello world!"}, {{"( hello world !"}}, words).value, 100, 1e-9);
  EXPECT_EQ(corpus_chrf({"a"}, {{"a"}}, words).name, "chrF2++");
}

TEST(Chrf, EmptyLines) {
  EXPECT_EQ(corpus_chrf({""}, {{""}}).value, 0);
  EXPECT_EQ(corpus_chrf({""}, {{"a"}}).value, 0);
  EXPECT_EQ(corpus_chrf({"a"}, {{""}}).value, 0);
  EXPECT_EQ(sentence_chrf("a", {"", "a"}).value, 100);  // the better of the references
}

TEST(Chrf, RefusesOrdersThatCannotBeMeant) {
  ChrfOptions none;
  none.char_order = 0;
  EXPECT_THROW(corpus_chrf({"a"}, {{"a"}}, none), UsageError);
  ChrfOptions negative;
  negative.word_order = -1;
  EXPECT_THROW(corpus_chrf({"a"}, {{"a"}}, negative), UsageError);
  ChrfOptions endless;
  endless.char_order = 1'000'000'000;
  EXPECT_THROW(corpus_chrf({"a"}, {{"a"}}, endless), UsageError);
  ChrfOptions beta;
  beta.beta = 0;
  EXPECT_THROW(corpus_chrf({"a"}, {{"a"}}, beta), UsageError);
  EXPECT_THROW(corpus_chrf({"a"}, {{"a", "b"}}), UsageError);
  EXPECT_THROW(corpus_chrf({}, {{}}), Error);
}

}  // namespace
}  // namespace attend
