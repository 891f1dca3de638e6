#include "attend/search/pair_scorer.h"

#include <cmath>
#include <sstream>

#include <gtest/gtest.h>

#include "attend/search/translator.h"
#include "tests/data/test_files.h"
#include "tests/search/models.h"
#include "tests/support/captured_log.h"

namespace attend {
namespace {

std::shared_ptr<const Tokenizer> tokenizer() {
  return {std::shared_ptr<const Tokenizer>(), &small_tokenizer()};
}

PairScorer scorer(const PairScorerOptions& options = {.workers = 1}, int64_t max_length = 128) {
  TransformerConfig config = search_config(small_tokenizer().vocabulary_size());
  config.max_length = max_length;
  return {random_model(config, DType::kFloat32, 3), tokenizer(), tokenizer(), options};
}

/// Pairs of a few words each, of many lengths.
std::vector<GivenPair> many_pairs(std::size_t count) {
  const std::vector<std::string> words = {"one", "two", "three", "hundred", "a", "dog", "…"};
  std::vector<GivenPair> pairs(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t w = 0; w < i * 7 % 13; ++w) pairs[i].source += words[(i + w) % 7] + " ";
    for (std::size_t w = 0; w < i * 5 % 11; ++w) pairs[i].target += words[(i * w) % 7] + " ";
  }
  return pairs;
}

std::vector<double> log_probs_of(const std::vector<Alternative>& answers) {
  std::vector<double> log_probs;
  for (const Alternative& answer : answers) log_probs.push_back(answer.log_prob);
  return log_probs;
}

TEST(PairScorer, AddsUpTheTokensItNames) {
  const std::vector<GivenPair> pairs = many_pairs(20);
  ScoreCounts counts;
  const auto answers = scorer({.length_penalty = 1, .workers = 1, .details = {.tokens = true}})
                           .score(pairs, &counts);
  ASSERT_EQ(answers.size(), pairs.size());
  double all = 0;
  int64_t tokens = 0;
  for (std::size_t i = 1; i < answers.size(); ++i) {
    const Alternative& answer = answers[i];
    EXPECT_EQ(answer.text, pairs[i].target);
    ASSERT_EQ(std::ssize(answer.token_log_probs), answer.tokens);
    std::vector<std::string> pieces =
        small_tokenizer().encode_as_pieces(is_blank(pairs[i].target) ? "" : pairs[i].target);
    pieces.push_back("</s>");
    EXPECT_EQ(answer.target_pieces, pieces);
    double sum = 0;
    for (const float log_prob : answer.token_log_probs) sum += static_cast<double>(log_prob);
    EXPECT_EQ(answer.log_prob, sum);
    EXPECT_DOUBLE_EQ(answer.score, sum * 6 / static_cast<double>(5 + answer.tokens));
    all += sum;
    tokens += answer.tokens;
  }
  EXPECT_EQ(counts.pairs, 20);
  EXPECT_EQ(counts.target_tokens, tokens);
  EXPECT_NEAR(counts.log_prob, all, 1e-9);
  EXPECT_NEAR(counts.perplexity(), std::exp(-all / static_cast<double>(tokens)), 1e-9);
  EXPECT_TRUE(scorer().score({pairs[3]})[0].target_pieces.empty());
}

TEST(Contract6PairScorer, ScoresDependNeitherOnBatchesNorOnWorkersNorOnOrder) {
  std::vector<GivenPair> pairs = many_pairs(300);
  const auto expected = log_probs_of(scorer().score(pairs));
  for (const PairScorerOptions& options :
       {PairScorerOptions{.batch_tokens = 1, .workers = 1},
        PairScorerOptions{.batch_tokens = 64, .workers = 3},
        PairScorerOptions{.batch_tokens = 100000, .workers = 2}}) {
    EXPECT_EQ(log_probs_of(scorer(options).score(pairs)), expected);
  }
  std::reverse(pairs.begin(), pairs.end());
  auto backwards = log_probs_of(scorer().score(pairs));
  std::reverse(backwards.begin(), backwards.end());
  EXPECT_EQ(backwards, expected);
}

TEST(Contract1PairScorer, BlankSidesHaveNoTokens) {
  const auto answers = scorer().score({{"", ""},
                                       {" \t ", "\u3000"},
                                       {"a dog", ""},
                                       {"a dog", "  "},
                                       {"", "a dog"},
                                       {"  ", "a dog"}});
  ASSERT_EQ(answers.size(), 6U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(answers[i].log_prob, 0);
    EXPECT_EQ(answers[i].tokens, 0);
  }
  EXPECT_EQ(answers[2].tokens, 1);
  EXPECT_LT(answers[2].log_prob, 0);
  EXPECT_EQ(answers[2].log_prob, answers[3].log_prob);
  EXPECT_GT(answers[4].tokens, 1);
  EXPECT_EQ(answers[4].log_prob, answers[5].log_prob);
}

TEST(Contract3PairScorer, WhatIsTooLongHasNoProbabilityAndIsNamed) {
  std::string long_text;
  for (int i = 0; i < 40; ++i) long_text += "one two ";
  const CapturedLog log;
  ScoreCounts counts;
  const auto answers = scorer({.workers = 1}, 16)
                           .score({{"one", "two", "x, line 1"},
                                   {long_text, "two", "x, line 2"},
                                   {"one", long_text, "x, line 3"}},
                                  &counts);
  EXPECT_TRUE(std::isfinite(answers[0].log_prob));
  EXPECT_EQ(answers[1].log_prob, -INFINITY);
  EXPECT_EQ(answers[2].score, -INFINITY);
  EXPECT_EQ(counts.too_long, 2);
  EXPECT_EQ(counts.log_prob, answers[0].log_prob);
  EXPECT_EQ(log.count("x, line 1"), 0U);
  EXPECT_EQ(log.count("x, line 2: "), 1U);
  EXPECT_EQ(log.count("x, line 3: "), 1U);
  EXPECT_EQ(log.count("2 of 3 pairs were longer"), 1U);
}

TEST(Contract4PairScorer, BadBytesAreReplacedAndNamed) {
  const CapturedLog log;
  ScoreCounts counts;
  const auto answers =
      scorer().score({{"one \xff", "two"}, {"one \uFFFD", "two"}, {"a", "\x80"}}, &counts);
  EXPECT_EQ(answers[0].log_prob, answers[1].log_prob);
  EXPECT_EQ(answers[2].text, "\uFFFD");
  EXPECT_EQ(counts.repaired, 2);
  EXPECT_EQ(log.count("pair 1: "), 1U);
  EXPECT_EQ(log.count("pair 2: "), 0U);
  EXPECT_EQ(log.count("pair 3: "), 1U);
}

TEST(PairScorer, ManyWindowsComeInOrder) {
  PairScorer one = scorer({.workers = 1});
  int64_t given = 0, received = 0;
  constexpr int64_t kPairs = 9000;  // more than two windows
  const ScoreCounts counts = one.score_stream(
      [&](GivenPair& pair) {
        pair.source = "one";
        pair.target = std::to_string(given);
        return given++ < kPairs;
      },
      [&](const Alternative& answer) {
        ASSERT_EQ(answer.text, std::to_string(received++));
        EXPECT_LE(given, received + 4096);
      });
  EXPECT_EQ(counts.pairs, kPairs);
  EXPECT_EQ(received, kPairs);
}

TEST(PairScorer, ErrorsOfCallersComeOut) {
  PairScorer one = scorer();
  EXPECT_THROW(one.score_stream([](GivenPair&) -> bool { throw std::runtime_error("next"); },
                                [](const Alternative&) {}),
               std::runtime_error);
  EXPECT_THROW(one.score_stream([n = 0](GivenPair&) mutable { return n++ < 3; },
                                [](const Alternative&) { throw std::runtime_error("sink"); }),
               std::runtime_error);
  EXPECT_EQ(one.score({{"one", "two"}}).size(), 1U);
  EXPECT_THROW(scorer({.batch_tokens = 0}), UsageError);
  EXPECT_THROW(scorer({.workers = -1}), UsageError);
  EXPECT_THROW(scorer({.length_penalty = NAN}), UsageError);
}

}  // namespace
}  // namespace attend
