#include "attend/metrics/text_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attend {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

Lines copies(const std::string& line, size_t count, const Lines& others) {
  Lines lines(count, line);
  lines.insert(lines.end(), others.begin(), others.end());
  return lines;
}

TEST(TextCheck, PlainTextIsFine) {
  EXPECT_THAT(suspicions_about({}), IsEmpty());
  EXPECT_THAT(suspicions_about({"", std::string(kNoReference)}), IsEmpty());
  EXPECT_THAT(suspicions_about({"A sentence.", "user@@example", "Wait . . .", "x & y", "\"q\""}),
              IsEmpty());
}

TEST(TextCheck, NamesHowManyLinesAndTheFirst) {
  EXPECT_THAT(
      suspicions_about({"Plain.", "It is tokenized .", "This , too ."}),
      ElementsAre("2 of 3 lines end in \" .\", as tokenized text does: detokenize it; the first is "
                  "line 2"));
}

TEST(TextCheck, TokenizedPeriodsAsSacrebleuCountsThem) {
  const Lines others(1000, "Plain text.");
  EXPECT_THAT(suspicions_about(copies("a .", 99, others)), IsEmpty());
  EXPECT_THAT(suspicions_about(copies("a .", 100, others)), ElementsAre(StartsWith("100 of 1100")));
}

TEST(TextCheck, PiecesEscapesTabsAndBadBytes) {
  EXPECT_THAT(suspicions_about({"sub@@ word pie@@ ces"}), ElementsAre(HasSubstr("\"@@\"")));
  EXPECT_THAT(suspicions_about({"▁a ▁sen ten ce ."}),
              ElementsAre(HasSubstr("end in"), HasSubstr("\"▁\"")));
  EXPECT_THAT(suspicions_about({"I don &apos;t"}), ElementsAre(HasSubstr("Moses")));
  EXPECT_THAT(suspicions_about({"a well @-@ known"}), ElementsAre(HasSubstr("Moses")));
  EXPECT_THAT(suspicions_about(copies("one\ttwo", 1, Lines(5000, "Plain."))),
              ElementsAre(StartsWith("1 of 5001 lines have a tab")));
  EXPECT_THAT(suspicions_about(copies("\xFF", 1, Lines(5000, "Plain."))),
              ElementsAre(HasSubstr("no valid UTF-8")));
}

}  // namespace
}  // namespace attend
