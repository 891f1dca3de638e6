#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>

#include "tests/cli/process.h"

namespace attend {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

struct Texts {
  TemporaryFolder folder;
  std::string reference =
      folder.file("ref", "The cat sat on the mat.\nIt was a good day for all\n");
  std::string second = folder.file("ref2", "A cat sat on a mat.\nA good day it was for all\n");
  std::string output = "The cat sat on a mat.\nIt was a good day for us\n";
};

TEST(Evaluate, PerfectTextHasTheBestScores) {
  const Texts texts;
  const Finished finished = run({"evaluate", "--reference", texts.reference, "--metrics",
                                 "bleu,chrf,chrf++,ter", "--hypothesis", texts.reference});
  ASSERT_EQ(finished.status, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr(" = 100.0 100.0/100.0/100.0/100.0"));
  EXPECT_THAT(finished.out, HasSubstr("\nchrF2|"));
  EXPECT_THAT(finished.out, HasSubstr("\nchrF2++|"));
  EXPECT_THAT(finished.out, HasSubstr("\nTER|"));
  EXPECT_THAT(finished.out, testing::EndsWith(" = 0.0\n"));
}

TEST(Evaluate, OptionsReachTheSignatures) {
  const Texts texts;
  const Finished finished =
      run({"evaluate", "--reference", texts.reference, texts.second, "--metrics", "bleu",
           "--tokenize", "char", "--lowercase", "--smooth", "floor", "--smooth-value", "0.5"},
          texts.output);
  ASSERT_EQ(finished.status, 0) << finished.err;
  EXPECT_THAT(finished.out,
              StartsWith("BLEU|nrefs:2|case:lc|eff:no|tok:char|smooth:floor[0.50]|version:"));
}

TEST(Evaluate, WritesJson) {
  const Texts texts;
  const Finished finished =
      run({"evaluate", "--reference", texts.reference, "--json", "--confidence"}, texts.output);
  ASSERT_EQ(finished.status, 0) << finished.err;
  const auto scores = nlohmann::json::parse(finished.out);
  ASSERT_EQ(scores.size(), 2U);
  EXPECT_EQ(scores[0].at("name"), "BLEU");
  EXPECT_GT(scores[0].at("score").get<double>(), 30.0);
  EXPECT_EQ(scores[0].at("tok"), "13a");
  EXPECT_GE(scores[0].at("confidence").get<double>(), 0.0);
  EXPECT_EQ(scores[1].at("name"), "chrF2");
}

TEST(Evaluate, ScoresEachSentence) {
  const Texts texts;
  const std::vector<std::string> arguments = {"evaluate", "--reference", texts.reference,
                                              "--sentence"};
  const Finished finished = run(arguments, "The cat sat on the mat.\nno\n");
  ASSERT_EQ(finished.status, 0) << finished.err;
  EXPECT_THAT(finished.out, StartsWith("100.0\t100.0\n"));
  EXPECT_EQ(std::count(finished.out.begin(), finished.out.end(), '\n'), 2);
  EXPECT_THAT(finished.err, HasSubstr("BLEU|nrefs:1|case:mixed|eff:yes|"));
}

TEST(Contract25, TheCommandPrintsWhatSacreBleuDoes) {
  const char* const shared = std::getenv("ATTEND_SHARED");
  const std::string data =
      (shared ? std::string(shared) : ATTEND_SOURCE_DIR "/../shared") + "/data/sacrebleu/";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << data << " is not there";
  const Finished finished =
      run({"evaluate", "--reference", data + "ref.de.gz", "--hypothesis", data + "C-3MA.4959.de.gz",
           "--metrics", "bleu,chrf", "--width", "4"});
  ASSERT_EQ(finished.status, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr(" = 22.67"));
  EXPECT_THAT(finished.out, HasSubstr(" = 51.9533\n"));
}

}  // namespace
}  // namespace attend
