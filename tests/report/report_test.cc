#include "attend/report/report.h"

#include <gtest/gtest.h>

#include "attend/base/error.h"

namespace attend {
namespace {

TEST(NamesOf, AreTheLastPartsOfFolders) {
  EXPECT_EQ(names_of({"/runs/a", "b/", "/runs/./c/../d"}),
            (std::vector<std::string>{"a", "b", "d"}));
}

TEST(NamesOf, HaveMorePartsWhereTheLastAreTheSame) {
  EXPECT_EQ(names_of({"/x/../old/run", "/new/run", "/new/other", "/run"}),
            (std::vector<std::string>{"old/run", "new/run", "other", "run"}));
  EXPECT_THROW(names_of({"/new/run", "/new/x/../run/"}), UsageError);
}

TEST(NamesOf, NeverPointUpwards) {
  for (const std::string& name : names_of({".", ".."})) {
    EXPECT_EQ(name.find(".."), std::string::npos) << name;
  }
  EXPECT_EQ(names_of({"/"}).size(), 1U);
}

TEST(ReportOptions, AreCheckedByName) {
  const auto message = [](const ReportOptions& options) -> std::string {
    try {
      options.validate();
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message({}), "");
  EXPECT_EQ(message({.test_source = "a", .test_target = "b"}), "");
  EXPECT_EQ(message({.test_target = "b"}).substr(0, 11), "test_source");
  EXPECT_EQ(message({.samples = -1}).substr(0, 7), "samples");
  EXPECT_EQ(message({.beam_size = 100'000}).substr(0, 9), "beam_size");
  EXPECT_EQ(message({.bleu = {.tokenizer = BleuTokenizer::kSpm}}).substr(0, 15), "tokenizer_model");
  EXPECT_EQ(message({.length_penalty = -0.5}).substr(0, 14), "length_penalty");
}

}  // namespace
}  // namespace attend
