#include "attend/metrics/ter.h"

#include <gtest/gtest.h>

#include "attend/base/error.h"

namespace attend {
namespace {

// Snover et al. 2006, §2: "this week" is shifted, "Saudi Arabia" substituted and inserted against
// "the Saudis", and "American" inserted: 4 edits, 13 words of reference.
TEST(Ter, IsThePapersExample) {
  const TerScore score =
      corpus_ter({"THIS WEEK THE SAUDIS denied information published in the new york times"},
                 {{"SAUDI ARABIA denied THIS WEEK information published in the AMERICAN new york "
                   "times"}});
  EXPECT_EQ(score.edits, 4);
  EXPECT_EQ(score.reference_length, 13);
  EXPECT_EQ(
      score.format(),
      "TER|nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:attend-0.1.0 = 30.8");
}

TEST(Ter, AShiftIsOneEditOfAnyLength) {
  EXPECT_EQ(corpus_ter({"d e f g a b c"}, {{"a b c d e f g"}}).edits, 1);
  EXPECT_EQ(corpus_ter({"b a"}, {{"a b"}}).edits, 1);
  EXPECT_EQ(corpus_ter({"b a d c"}, {{"a b c d"}}).edits, 2);
}

TEST(Ter, IgnoresCaseUnlessAsked) {
  EXPECT_EQ(corpus_ter({"Ärger"}, {{"ärger"}}).edits, 0);
  EXPECT_EQ(corpus_ter({"Ärger"}, {{"ärger"}}, {.case_sensitive = true}).edits, 1);
}

TEST(Ter, SeveralReferencesGiveTheFewestEditsAndTheAverageLength) {
  const TerScore score = corpus_ter({"a b c"}, {{"a b c d e"}, {"a b"}});
  EXPECT_EQ(score.edits, 1);
  EXPECT_EQ(score.reference_length, 3.5);
}

// sacreBLEU normalises references twice, and so tells this line from itself.
TEST(Ter, NormalisesReferencesTwice) {
  const TerScore score = corpus_ter({"Anna's, too."}, {{"Anna's, too."}}, {.normalized = true});
  EXPECT_EQ(score.edits, 2);
  EXPECT_EQ(score.reference_length, 5);
}

TEST(Ter, EmptyLines) {
  EXPECT_EQ(corpus_ter({""}, {{""}}).value, 0);
  EXPECT_EQ(corpus_ter({""}, {{"a b"}}).value, 100);
  EXPECT_EQ(corpus_ter({"a b"}, {{""}}).value, 100);
  EXPECT_EQ(sentence_ter("yes", {"yes"}).value, 0);
}

TEST(Ter, RefusesUnequalLines) {
  EXPECT_THROW(corpus_ter({"a", "b"}, {{"a"}}), UsageError);
  EXPECT_THROW(corpus_ter({}, {{}}), Error);
}

}  // namespace
}  // namespace attend
