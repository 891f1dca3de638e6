// A step in two turns finds what a step in one does, and runs fewer hypotheses for it.

#include <gtest/gtest.h>

#include "tests/search/toy_search.h"

namespace attend {
namespace {

/// What a search finds in one turn a step and in two, which must be the same. Returns the
/// hypotheses that were run, in one and in two.
std::pair<int64_t, int64_t> compare_turns(const ToyModel& model, const SearchOptions& options,
                                          const SentenceConstraints& constraints = {}) {
  ToyTurns in_one, in_two{.in_two = true};
  const auto one = toy_search(model, options, constraints, toy_tokens(), 0, 100, &in_one);
  const auto two = toy_search(model, options, constraints, toy_tokens(), 0, 100, &in_two);
  EXPECT_EQ(one.size(), two.size());
  for (std::size_t i = 0; i < std::min(one.size(), two.size()); ++i) {
    EXPECT_EQ(one[i].tokens, two[i].tokens) << "rank " << i;
    EXPECT_EQ(one[i].score, two[i].score) << "rank " << i;
    EXPECT_EQ(one[i].token_log_probs, two[i].token_log_probs) << "rank " << i;
  }
  return {in_one.runs, in_two.runs};
}

/// The same over many models; returns the sums.
std::pair<int64_t, int64_t> compare_turns(const SearchOptions& options,
                                          const SentenceConstraints& constraints = {}) {
  std::pair<int64_t, int64_t> runs;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    const auto [one, two] = compare_turns(ToyModel(seed, 12), options, constraints);
    runs.first += one;
    runs.second += two;
  }
  return runs;
}

TEST(BeamTurns, FindTheSameWithFewerHypotheses) {
  for (const int64_t beam_size : {2, 4, 5, 8}) {
    for (const Stopping stopping : {Stopping::kLikely, Stopping::kCertain}) {
      for (const int64_t n_best : {int64_t{1}, beam_size}) {
        SCOPED_TRACE(testing::Message() << beam_size << " " << n_best);
        SearchOptions options{.beam_size = beam_size, .length_penalty = 1, .n_best = n_best};
        options.max_length = 12;
        options.stopping = stopping;
        const auto [one, two] = compare_turns(options);
        EXPECT_LT(two, one);
      }
    }
  }
}

TEST(BeamTurns, UnderRulesToo) {
  SearchOptions options{.beam_size = 4, .max_length = 12, .min_length = 3, .n_best = 4};
  options.repetition_penalty = 1.5;
  options.no_repeat_ngram_size = 2;
  const auto [one, two] = compare_turns(options);
  EXPECT_LT(two, one);
}

/// Where all are about as good none waits, and greedy search has none to spare.
TEST(BeamTurns, ThereIsOneWhereNoneIsFarBehind) {
  const auto [one, two] = compare_turns({.beam_size = 1, .max_length = 12});
  EXPECT_EQ(one, two);
  const SearchTokens tokens;
  Beam beam({}, 100, tokens, {.beam_size = 4});
  const std::vector<int32_t> words{5, 6, 7, 8};
  const std::vector<float> log_probs{-1, -2, -3.07F, -3.09F};  // log 8 = 2.08 behind
  const StepScores first{.tokens = words, .log_probs = log_probs, .eos_log_prob = -20};
  beam.advance(std::span(&first, 1));
  EXPECT_EQ(beam.next_turn(false).size(), 4U);
  EXPECT_EQ(beam.next_turn(true).size(), 3U);
}

/// Where more than candidates counts, all hypotheses are looked at together.
TEST(BeamTurns, SomeSearchesHaveOne) {
  const auto expect_one = [](const SearchOptions& options,
                             const SentenceConstraints& constraints = {}) {
    const auto [one, two] = compare_turns(options, constraints);
    EXPECT_EQ(one, two);
  };
  const SearchOptions plain{.beam_size = 4, .max_length = 8, .n_best = 2};
  SearchOptions options = plain;
  options.coverage_penalty = 0.3;
  expect_one(options);
  options = plain;
  options.beam_groups = 2;
  options.diversity_strength = 0.5;
  expect_one(options);
  options = plain;
  options.sampling = true;
  options.n_best = 4;
  expect_one(options);
  SentenceConstraints constraints;
  constraints.required = {{5, 6}};
  expect_one(plain, constraints);
}

/// After a prefix hypotheses part, and steps have turns again.
TEST(BeamTurns, FollowAPrefix) {
  SentenceConstraints constraints;
  constraints.prefix = {4, 5};
  const auto [one, two] = compare_turns({.beam_size = 4, .max_length = 10}, constraints);
  EXPECT_LT(two, one);
}

/// log P a little above 0, as rounding makes it, must not count: what it is added to would be
/// left out in two turns and not in one.
TEST(BeamTurns, NoTokenIsMoreThanCertain) {
  const SearchTokens tokens;
  SearchOptions options{.beam_size = 3, .max_extra_length = 10};
  Beam beam({}, 100, tokens, options);
  const std::vector<int32_t> words{5, 6, 7};
  const std::vector<float> log_probs{-1, -1, -1}, certain{1e-5F, -9, -9};
  const StepScores first{.tokens = words, .log_probs = log_probs, .eos_log_prob = -20};
  beam.advance(std::span(&first, 1));
  const StepScores next{.tokens = words, .log_probs = certain, .eos_log_prob = -20};
  beam.advance(std::vector<StepScores>(3, next));
  for (const ActiveHypothesis& each : beam.active()) EXPECT_LE(each.log_prob, -1);
}

}  // namespace
}  // namespace attend
