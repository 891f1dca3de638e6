// A step in two turns finds what a step in one does, and runs fewer hypotheses for it.

#include <cmath>

#include <gtest/gtest.h>

#include "attend/base/error.h"
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
    for (const Stopping stopping : {Stopping::kLikely, Stopping::kCertain, Stopping::kFirst}) {
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

/// A beam of 4 whose hypotheses have these log P after the first step.
Beam beam_of(const std::vector<float>& log_probs) {
  static const SearchTokens kTokens;
  Beam beam({}, 100, kTokens, {.beam_size = 4, .max_extra_length = 10});
  const std::vector<int32_t> words{5, 6, 7, 8};
  const StepScores first{.tokens = words, .log_probs = log_probs, .eos_log_prob = -20};
  beam.advance(std::span(&first, 1));
  return beam;
}

/// Greedy search has none to spare, and log 8 = 2.08 is far behind.
TEST(BeamTurns, ThereIsOneWhereNoneIsFarBehind) {
  const auto [one, two] = compare_turns({.beam_size = 1, .max_length = 12});
  EXPECT_EQ(one, two);
  EXPECT_EQ(beam_of({-1, -2, -3, -3.07F}).next_turn(true).size(), 4U);
  EXPECT_EQ(beam_of({-1, -2, -3.07F, -3.09F}).next_turn(true).size(), 3U);
  EXPECT_EQ(beam_of({-1, -2, -3.07F, -3.09F}).next_turn(false).size(), 4U);
}

/// Takes a turn in which each hypothesis is offered these words.
void offer_all(Beam& beam, const std::vector<float>& log_probs, bool in_two,
               float eos_log_prob = -30) {
  const std::vector<int32_t> words{5, 6, 7, 8};
  const StepScores row{.tokens = words, .log_probs = log_probs, .eos_log_prob = eos_log_prob};
  beam.advance(std::vector<StepScores>(beam.next_turn(in_two).size(), row));
}

/// Of equal candidates the better parent's comes first, so that a hypothesis with no more than the
/// last candidate that goes on is out.
TEST(BeamTurns, AnEqualScoreIsNotEnough) {
  Beam beam = beam_of({-1, -9, -9, -9});
  offer_all(beam, {-1, -2, -3, -8}, true);  // -2, -3, -4 and -9
  EXPECT_EQ(beam.length(), 2);
  for (const ActiveHypothesis& each : beam.active()) EXPECT_EQ(each.parent, 0);
  beam = beam_of({-1, -9, -9, -9});
  offer_all(beam, {-1, -2, -3, -8.5F}, true);
  EXPECT_EQ(beam.length(), 1);
  EXPECT_EQ(beam.turn().size(), 3U);
}

TEST(BeamTurns, FindTheSameWithFewCandidates) {
  compare_turns({.beam_size = 30, .max_length = 3});
  compare_turns({.beam_size = 140, .max_length = 4, .n_best = 20});  // all tokens are ranked
}

/// Scores that are not numbers are an error or not, in one turn as in two.
TEST(BeamTurns, WhatIsLeftOutCannotFail) {
  for (const bool in_two : {false, true}) {
    SCOPED_TRACE(in_two);
    const std::vector<int32_t> words{5, 6, 7, 8};
    const std::vector<float> log_probs{-1, -2, -3, -8};
    const StepScores good{.tokens = words, .log_probs = log_probs, .eos_log_prob = -30};
    const StepScores bad{.tokens = words, .log_probs = log_probs, .eos_log_prob = NAN};
    Beam beam = beam_of({-1, -9, -9, -9});
    const std::vector<StepScores> rows{good, bad, bad, bad};
    beam.advance(std::span(rows).first(beam.next_turn(in_two).size()));
    EXPECT_EQ(beam.length(), 2);
    beam = beam_of({-1, -3, -3, -3});
    EXPECT_THROW(beam.advance(rows), Error);
  }
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
  Beam beam = beam_of({-1, -1, -1, -1});
  offer_all(beam, {1e-5F, -9, -9, -9}, false);
  for (const ActiveHypothesis& each : beam.active()) EXPECT_LE(each.log_prob, -1);
}

}  // namespace
}  // namespace attend
