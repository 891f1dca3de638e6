// What attend translate writes besides plain lines, and how it talks to a person.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/cli/job.h"

namespace attend {
namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class TranslateJob : public Job {
 protected:
  static Finished translate(const std::vector<std::string>& arguments, const std::string& input) {
    return run(with({"translate", path("run"), "--quiet"}, arguments), input);
  }
  static std::vector<json> objects(const std::vector<std::string>& arguments,
                                   const std::string& input) {
    const Finished finished = translate(with({"--format", "json"}, arguments), input);
    EXPECT_EQ(finished.status, 0) << finished.err;
    std::vector<json> found;
    std::istringstream lines(finished.out);
    for (std::string line; std::getline(lines, line);) found.push_back(json::parse(line));
    return found;
  }
};

TEST_F(TranslateJob, DetailsFollowTheText) {
  const std::string text = "one two\n\nthree four five\n";
  const std::string plain = translate({}, text).out;
  const Finished finished = translate({"--token-scores", "--alignments", "--attention"}, text);
  ASSERT_EQ(finished.status, 0) << finished.err;
  std::istringstream lines(finished.out), texts(plain);
  int count = 0;
  for (std::string line, expected; std::getline(lines, line); ++count) {
    ASSERT_TRUE(std::getline(texts, expected));
    EXPECT_EQ(line.substr(0, line.find(" ||| ")), expected);
    if (count == 1) {
      EXPECT_EQ(line, " |||  |||  ||| ");
      continue;
    }
    EXPECT_THAT(line, ContainsRegex("\\|\\|\\| -[-0-9. ]+ \\|\\|\\| ([0-9]+-[0-9]+ ?)* "
                                    "\\|\\|\\| [0-9.]+,[-0-9., ]+$"));
  }
  EXPECT_EQ(count, 3);
  const Finished lists = translate({"--n-best", "2", "--alignments"}, text);
  EXPECT_THAT(lists.out, ContainsRegex("^0 \\|\\|\\| .* \\|\\|\\| -[0-9.]+ \\|\\|\\| "));
  EXPECT_THAT(lists.out, HasSubstr("\n1 |||  ||| 0.000000 ||| \n"));
}

TEST_F(TranslateJob, JsonIsAnObjectALine) {
  const std::string text = "one two\n\nthree \"quoted\" \xF0\x9F\x98\x80\n";
  const auto plain = objects({}, text);
  ASSERT_EQ(plain.size(), 3U);
  std::istringstream texts(translate({}, text).out);
  for (std::size_t i = 0; i < 3; ++i) {
    std::string expected;
    std::getline(texts, expected);
    EXPECT_EQ(plain[i].at("index"), i);
    EXPECT_EQ(plain[i].at("text"), expected);
    EXPECT_LE(plain[i].at("log_prob"), plain[i].at("score"));
    EXPECT_EQ(plain[i].size(), 4U) << plain[i];
  }
  EXPECT_EQ(plain[1].at("score"), 0);
}

TEST_F(TranslateJob, JsonHasTheDetails) {
  const auto found = objects({"--n-best", "3", "--token-scores", "--alignments", "--attention"},
                             "one two three\n");
  ASSERT_EQ(found.size(), 1U);
  std::vector<json> all = found[0].at("alternatives");
  EXPECT_EQ(all.size(), 2U);
  all.push_back(found[0]);
  for (const json& each : all) {
    const std::size_t tokens = each.at("tokens").size();
    EXPECT_EQ(each.at("tokens").back(), "</s>");
    EXPECT_EQ(each.at("token_scores").size(), tokens);
    ASSERT_EQ(each.at("attention").size(), tokens);
    for (const json& row : each.at("attention")) {
      EXPECT_EQ(row.size(), each.at("source_tokens").size());
    }
    for (const json& link : each.at("alignments")) {
      ASSERT_EQ(link.size(), 2U);
      EXPECT_LT(link[0], 3);
    }
  }
  EXPECT_GE(found[0].at("score"), all[0].at("score"));
}

class Contract1Interactive : public TranslateJob {};

TEST_F(Contract1Interactive, ATerminalIsPromptedAndAnswered) {
  const std::string answer = translate({}, "one two\n").out;
  const Finished seen = converse({"translate", path("run")}, "> ", {"one two", "", "one two"});
  EXPECT_EQ(seen.status, 0) << seen.out;
  const std::string line = answer.substr(0, answer.size() - 1) + "\r\n";
  // The terminal echoes what is typed; the empty line has an empty answer.
  const std::string expected =
      fmt::format("> one two\r\n{0}> \r\n\r\n> one two\r\n{0}> \r\n", line);
  EXPECT_THAT(seen.out, HasSubstr("Ctrl-D ends\r\n" + expected));
  EXPECT_THAT(seen.out, ContainsRegex("3 lines, [0-9]+ tokens? in "));
}

TEST_F(TranslateJob, NoPromptWhereNobodySeesIt) {
  const Finished finished = converse({"translate", path("run"), "--output", path("typed")},
                                     "Ctrl-D ends\r\n", {"one two\n\x04"});
  EXPECT_EQ(finished.status, 0) << finished.out;
  EXPECT_THAT(finished.out, Not(HasSubstr("> ")));
}

}  // namespace
}  // namespace attend
