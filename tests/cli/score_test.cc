// attend score, end to end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <nlohmann/json.hpp>

#include "tests/cli/job.h"

namespace attend {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

class ScoreJob : public Job {
 protected:
  static Finished score(const std::vector<std::string>& arguments) {
    return run(with({"score", path("run"), "--precision", "float32", "--quiet"}, arguments));
  }
  static std::vector<double> numbers(const std::vector<std::string>& arguments) {
    const Finished finished = score(arguments);
    EXPECT_EQ(finished.status, 0) << finished.err;
    std::vector<double> values;
    for (const std::string& line : lines_of(finished.out)) values.push_back(std::stod(line));
    return values;
  }
};

TEST_F(ScoreJob, PrintsALineAPair) {
  const std::string source = folder_->file("s", "one two\n\nthree\n\nfour\n");
  const std::string target = folder_->file("t", "ONE TWO\n\n\nTHREE\nFOUR FIVE");
  const auto log_probs = numbers({"--source", source, "--target", target});
  ASSERT_EQ(log_probs.size(), 5U);
  EXPECT_EQ(log_probs[1], 0);
  for (const std::size_t i : {0U, 2U, 3U, 4U}) EXPECT_LT(log_probs[i], 0) << i;

  const Finished tokens = score({"--source", source, "--target", target, "--token-scores"});
  const auto lines = lines_of(tokens.out);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[1], "0.000000 ||| ");
  const auto normalized =
      numbers({"--source", source, "--target", target, "--score", "normalized"});
  const auto perplexity =
      numbers({"--source", source, "--target", target, "--score", "perplexity"});
  EXPECT_EQ(perplexity[1], 1);
  for (const std::size_t i : {0U, 2U, 3U, 4U}) {
    std::istringstream line(lines[i]);
    std::string total, bars;
    line >> total >> bars;
    EXPECT_EQ(bars, "|||");
    double sum = 0;
    int count = 0;
    for (double value; line >> value; ++count) sum += value;
    EXPECT_NEAR(std::stod(total), log_probs[i], 1e-9);
    EXPECT_NEAR(sum, log_probs[i], 1e-4);
    EXPECT_NEAR(normalized[i], sum / std::pow((5.0 + count) / 6, 0.6), 1e-4);
    EXPECT_NEAR(perplexity[i], std::exp(-sum / count), 1e-2);
  }
}

TEST_F(ScoreJob, LogsTheWhole) {
  const Finished finished = run({"score", path("run"), "--source", path("a"), "--target", path("b"),
                                 "--output", path("scores"), "--workers", "2"});
  ASSERT_EQ(finished.status, 0) << finished.err;
  EXPECT_EQ(finished.out, "");
  EXPECT_EQ(lines_of(contents_of(path("scores"))).size(), 300U);
  EXPECT_THAT(finished.err, HasSubstr("length_penalty 0.6"));
  EXPECT_THAT(finished.err,
              ContainsRegex("300 pairs, [0-9]+ tokens, log P -[0-9.]+, perplexity [0-9.]+; "));
}

TEST_F(ScoreJob, ReadsStandardInput) {
  const std::string target = folder_->file("t", "ONE TWO\n");
  const Finished piped =
      run({"score", path("run"), "--source", "-", "--target", target}, "one two\n");
  ASSERT_EQ(piped.status, 0) << piped.err;
  const std::string source = folder_->file("s", "\xEF\xBB\xBFone two\r\n");  // contract 2
  EXPECT_EQ(run({"score", path("run"), "--source", source, "--target", target}).out, piped.out);
}

TEST_F(ScoreJob, UnequalLineCountsAreNamed) {
  const std::string source = folder_->file("s", "one\ntwo\nthree\n");
  const std::string target = folder_->file("t", "ONE\nTWO\n");
  const std::string old = folder_->file("old", "as it was\n");
  const Finished finished = score({"--source", source, "--target", target, "--output", old});
  EXPECT_EQ(finished.status, 1);
  EXPECT_THAT(finished.err,
              StartsWith("error: " + source + " has 3 lines but " + target + " has 2"));
  EXPECT_EQ(contents_of(old), "as it was\n");
}

TEST_F(ScoreJob, WarningsNameTheLine) {
  const std::string source = folder_->file("s", "one\ntwo \xff\n");
  const std::string target = folder_->file("t", "ONE\nTWO\n");
  const Finished finished = run({"score", path("run"), "--source", source, "--target", target});
  EXPECT_EQ(finished.status, 0);
  EXPECT_THAT(finished.err,
              HasSubstr("warning: " + source + " and " + target + ", line 2: replaced"));
}

TEST_F(ScoreJob, DetailsOfGivenPairs) {
  const std::string source = folder_->file("s", "one two\n\n"),
                    target = folder_->file("t", "ONE TWO SIX\n\n");
  const std::vector<std::string> pair = {"--source", source, "--target", target};
  const auto lines = lines_of(score(with(pair, {"--alignments", "--attention"})).out);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0], ContainsRegex("^-[0-9.]+ \\|\\|\\| [0-1]-0.* [0-9.]+,[0-9.]+"));
  EXPECT_EQ(lines[1], "0.000000 |||  ||| ");
  const auto objects = lines_of(
      score(with(pair, {"--format", "json", "--score", "perplexity", "--token-scores"})).out);
  ASSERT_EQ(objects.size(), 2U);
  const auto first = nlohmann::json::parse(objects[0]), second = nlohmann::json::parse(objects[1]);
  EXPECT_EQ(first.at("text"), "ONE TWO SIX");
  const std::vector<double> scores = first.at("token_scores");
  EXPECT_EQ(first.at("tokens").size(), scores.size());
  EXPECT_NEAR(first.at("score"),
              std::exp(-first.at("log_prob").get<double>() / static_cast<double>(scores.size())),
              1e-3);
  EXPECT_EQ(second.at("score"), 1);
}

TEST_F(ScoreJob, NBestListsAreScoredAndSorted) {
  const std::string text = "one two three\n\nfour five\n";
  const std::string source = folder_->file("s", text);
  const std::string lists =
      run({"translate", path("run"), "--n-best", "4", "--precision", "float32"}, text).out;
  const Finished finished = run(
      {"score", path("run"), "--source", source, "--n-best", "-", "--precision", "float32"}, lists);
  ASSERT_EQ(finished.status, 0) << finished.err;
  const auto given = lines_of(lists), scored = lines_of(finished.out);
  ASSERT_EQ(scored.size(), given.size());
  std::vector<std::string> kept;
  double before = 0;
  std::string index;
  for (const std::string& line : scored) {
    const std::size_t at = line.rfind(" ||| ");
    kept.push_back(line.substr(0, at));
    const double value = std::stod(line.substr(at + 5));
    const std::string list = line.substr(0, line.find(' '));
    if (list == index) {
      EXPECT_LE(value, before);
    }
    EXPECT_GE(list, index);
    index = list;
    before = value;
  }
  EXPECT_TRUE(std::is_permutation(kept.begin(), kept.end(), given.begin(), given.end()));
}

TEST_F(ScoreJob, OtherFieldsOfAListAreKept) {
  const std::string source = folder_->file("s", "one\ntwo\n");
  const std::string lists = folder_->file(
      "l", "1 ||| SEVEN SIX ||| LM0= -2 TM= 3 ||| -7.5 ||| 0-0\n1 ||| TWO |||\n1 ||| ONE\n");
  const Finished finished = score({"--source", source, "--n-best", lists, "--score", "perplexity"});
  ASSERT_EQ(finished.status, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("1 ||| SEVEN SIX ||| LM0= -2 TM= 3 ||| -7.5 ||| 0-0 ||| "));
  EXPECT_THAT(finished.out, HasSubstr("1 ||| TWO ||| ||| "));
  EXPECT_THAT(finished.out, HasSubstr("1 ||| ONE ||| "));
  double before = 0;
  for (const std::string& line : lines_of(finished.out)) {
    const double value = std::stod(line.substr(line.rfind(' ') + 1));
    EXPECT_GE(value, before) << "the least perplexity first";
    before = value;
  }
}

TEST_F(ScoreJob, BadListsAreNamed) {
  const std::string source = folder_->file("s", "one\ntwo\n");
  const auto error_of = [&](const std::string& lists) {
    const Finished finished = score({"--source", source, "--n-best", folder_->file("l", lists)});
    EXPECT_EQ(finished.status, 1);
    return finished.err;
  };
  EXPECT_THAT(error_of("0 ||| ONE\nTWO\n"), HasSubstr("l, line 2: expected \"INDEX ||| TEXT\""));
  EXPECT_THAT(error_of("x ||| ONE\n"), HasSubstr("l, line 1: expected"));
  EXPECT_THAT(error_of("-1 ||| ONE\n"), HasSubstr("l, line 1: expected"));
  EXPECT_THAT(error_of("99999999999999999999 ||| ONE\n"), HasSubstr("l, line 1: expected"));
  EXPECT_THAT(error_of("1 ||| ONE\n0 ||| TWO\n"), HasSubstr("l, line 2: index 0 behind 1"));
  EXPECT_THAT(error_of("2 ||| ONE\n"), HasSubstr("index 2, but " + source + " has 2 lines"));
}

TEST_F(ScoreJob, WrongCallsAreNamed) {
  const std::string text = folder_->file("s", "one\n");
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& message) {
    const Finished finished = score(arguments);
    EXPECT_EQ(finished.status, 2) << finished.err;
    EXPECT_THAT(finished.err, HasSubstr(message));
  };
  refused({"--target", text}, "--source FILE is missing");
  refused({"--source", text}, "--target FILE is missing");
  refused({"--source", text, "--target", text, "--n-best", text}, "expected one of them");
  refused({"--source", text, "--n-best", text, "--format", "json"}, "format: found json");
  refused({"--source", text, "--target", text, "--alignments", "--alignment-layer", "2"},
          "alignment_layer: found 2, expected from 1 to 1");
  refused({"--source", "-", "--target", "-"}, "both standard input");
  refused({"--source", text, "--target", text, "--output", text}, "is the same file as");
  refused({"--source", text, "--target", text, "--batch-tokens", "0"}, "batch_tokens: found 0");
  refused({"--source", text, "--target", text, "--score", "bleu"}, "log_prob, normalized");
  EXPECT_EQ(contents_of(text), "one\n");
}

}  // namespace
}  // namespace attend
