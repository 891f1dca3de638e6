#include "attend/search/beam.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "attend/search/beam_search.h"
#include "tests/search/models.h"

namespace attend {
namespace {

constexpr int32_t kEos = 2;
const SearchTokens kTokens;

Beam make_beam(int64_t max_length, SearchOptions options) {
  options.max_extra_length = max_length;
  return {{}, 1000, kTokens, options};
}

/// The last token of each active hypothesis, after its parent's rank.
std::vector<std::pair<int32_t, int32_t>> active_of(const Beam& beam) {
  std::vector<std::pair<int32_t, int32_t>> active;
  for (const ActiveHypothesis& each : beam.active()) active.emplace_back(each.parent, each.token);
  return active;
}
using Active = std::vector<std::pair<int32_t, int32_t>>;

/// What one hypothesis is offered; best first.
struct Offer {
  std::vector<int32_t> tokens;
  std::vector<float> log_probs;
  float eos_log_prob = -100;
};

void advance(Beam& beam, const std::vector<Offer>& offers) {
  std::vector<StepScores> rows;
  for (const Offer& offer : offers) {
    rows.push_back(
        {.tokens = offer.tokens, .log_probs = offer.log_probs, .eos_log_prob = offer.eos_log_prob});
  }
  ASSERT_EQ(rows.size(), beam.active().size());
  beam.advance(rows);
}

TEST(Beam, KeepsTheBestInOrder) {
  Beam beam = make_beam(10, {.beam_size = 2});
  advance(beam, {{{6, 7, 5}, {-1, -2, -3}}});
  EXPECT_EQ(active_of(beam), (Active{{0, 6}, {0, 7}}));
  EXPECT_EQ(beam.length(), 1);
  advance(beam, {{{8, 9}, {-4, -5}}, {{9, 8}, {-0.5, -2}}});
  EXPECT_EQ(active_of(beam), (Active{{1, 9}, {1, 8}}));
  EXPECT_EQ(beam.active().front().log_prob, -2.5);
}

TEST(Beam, EqualOnesRankByParentThenByToken) {
  Beam beam = make_beam(10, {.beam_size = 3});
  advance(beam, {{{4, 5, 6, 9}, {-1, -1, -1, -1}}});
  EXPECT_EQ(active_of(beam), (Active{{0, 4}, {0, 5}, {0, 6}}));
  advance(beam, {{{7, 8}, {-1, -1}}, {{7}, {-1}}, {{3}, {-1}}});
  EXPECT_EQ(active_of(beam), (Active{{0, 7}, {0, 8}, {1, 7}}));
}

TEST(Beam, AnEndOfSentenceDoesNotShrinkTheBeam) {
  Beam beam = make_beam(10, {.beam_size = 2, .n_best = 2});
  advance(beam, {{{kEos, 5, 6, 7}, {-1, -2, -3, -4}, -1}});
  EXPECT_EQ(active_of(beam), (Active{{0, 5}, {0, 6}}));
}

TEST(Beam, AnEndOfSentenceBehindTheBeamIsNone) {
  Beam beam = make_beam(1, {.beam_size = 2});
  advance(beam, {{{5, 6, kEos, 7}, {-1, -2, -2.5, -3}, -2.5}});
  // At the greatest length each must end, whatever it is offered.
  advance(beam, {{{5, 6}, {-1, -2}, -8}, {{5, 6}, {-1, -2}, -6}});
  EXPECT_TRUE(beam.done());
  const std::vector<Hypothesis> best = beam.take_best();
  ASSERT_EQ(best.size(), 1U);
  EXPECT_EQ(best[0].tokens, std::vector<int32_t>{6});
  EXPECT_EQ(best[0].token_log_probs, (std::vector<float>{-2, -6}));
  EXPECT_EQ(best[0].log_prob, -8);
}

TEST(Beam, WhatIsSuppressedIsPassedOver) {
  const SearchTokens tokens{.suppressed = {0, 7}};
  Beam beam({}, 10, tokens, {.beam_size = 1});
  EXPECT_GE(beam.width(), 2 + 3);
  advance(beam, {{{1, 0, 7, 9}, {-1, -2, -3, -4}}});
  EXPECT_EQ(active_of(beam), (Active{{0, 9}}));
}

TEST(Beam, AChildInheritsItsParentsSlots) {
  Beam beam = make_beam(10, {.beam_size = 2});
  beam.active()[0].slots = {3};
  advance(beam, {{{6, 7}, {-1, -2}}});
  beam.active()[0].slots.push_back(4);
  beam.active()[1].slots.push_back(5);
  advance(beam, {{{8}, {-9}}, {{8, 9}, {-1, -2}}});
  EXPECT_EQ(beam.active()[0].slots, (std::vector<int32_t>{3, 5}));
  EXPECT_EQ(beam.active()[1].slots, (std::vector<int32_t>{3, 5}));
}

TEST(Beam, ScoresHaveTheLengthPenaltyOfWuEtAl) {
  EXPECT_DOUBLE_EQ(length_penalized(-6, 1, 0.6), -6);
  EXPECT_DOUBLE_EQ(length_penalized(-6, 7, 1), -3);
  EXPECT_DOUBLE_EQ(length_penalized(-6, 19, 0.5), -3);
  EXPECT_DOUBLE_EQ(length_penalized(-6, 19, 0), -6);
  Beam beam = make_beam(10, {.beam_size = 2, .length_penalty = 1});
  advance(beam, {{{5, kEos}, {-1, -2}, -2}});
  advance(beam, {{{kEos, 6}, {-2, -29}, -2}});
  const std::vector<Hypothesis> best = beam.take_best();
  ASSERT_EQ(best.size(), 1U);
  EXPECT_TRUE(best[0].tokens.empty());  // -2 / (6 / 6) against -3 / (7 / 6)
  EXPECT_DOUBLE_EQ(best[0].score, -2);
}

TEST(Beam, StopsOnceNoActiveOneCanStillWin) {
  // At the greatest length, 6 with its end of sentence, the penalty divides by 11 / 6.
  Beam beam = make_beam(5, {.beam_size = 2, .length_penalty = 1, .stopping = Stopping::kCertain});
  advance(beam, {{{kEos, 5, 6}, {-2, -3.6F, -5}, -2}});
  EXPECT_FALSE(beam.done());  // -3.6 / (11 / 6) > -2, but -5 / (11 / 6) is not
  advance(beam, {{{5}, {-0.1F}}});
  EXPECT_TRUE(beam.done());  // -3.7 / (11 / 6) < -2
}

TEST(Beam, StopsOnceNoActiveOneIsLikelyToWin) {
  // At the length that it would have if it ended next, 2, the penalty divides by 7 / 6.
  for (const auto& [log_prob, done] : {std::pair(-2.3F, false), {-2.4F, true}}) {
    Beam beam = make_beam(5, {.beam_size = 2, .length_penalty = 1});
    advance(beam, {{{kEos, 5, 6}, {-2, log_prob, -5}, -2}});
    EXPECT_EQ(beam.done(), done) << log_prob;
  }
}

TEST(Beam, StopsWithTheFirstThatAreFinished) {
  Beam beam = make_beam(9, {.beam_size = 2, .length_penalty = 0, .stopping = Stopping::kFirst});
  advance(beam, {{{kEos, 5, 6}, {-2, -40, -50}, -2}});
  EXPECT_EQ(active_of(beam), (Active{{0, 5}, {0, 6}}));  // neither will win, but one is missing
  advance(beam, {{{5, kEos}, {-1, -2}, -2}, {{5}, {-1}}});
  EXPECT_TRUE(beam.done());
  EXPECT_EQ(beam.take_best().front().tokens, std::vector<int32_t>{});
}

TEST(Beam, OfThoseThatFinishTogetherTheLikelierAreFirst) {
  SearchOptions options{.beam_size = 2, .length_penalty_kind = LengthPenalty::kAverage};
  options.n_best = 2;
  options.stopping = Stopping::kFirst;
  Beam beam = make_beam(9, options);
  advance(beam, {{{5, kEos, 6}, {-2, -3, -3.5F}, -3}});
  advance(beam, {{{kEos, 7}, {-0.5F, -9}, -0.5F}, {{kEos, 7}, {-0.1F, -9}, -0.1F}});
  EXPECT_TRUE(beam.done());
  const std::vector<Hypothesis> best = beam.take_best();
  ASSERT_EQ(best.size(), 2U);
  EXPECT_EQ(best[0].tokens, std::vector<int32_t>{5});  // -2.5 / 2
  EXPECT_TRUE(best[1].tokens.empty());                 // -3, and not 6 with -3.6 / 2
}

TEST(Beam, DropsThoseThatWillNotWin) {
  Beam beam = make_beam(5, {.beam_size = 3, .length_penalty = 0});
  advance(beam, {{{5, 6, 7}, {-1, -2, -3}, -9}});
  advance(beam, {{{kEos, 5}, {-0.5F, -0.1F}, -0.5F}, {{5, 6}, {-0.1F, -9}}, {{5}, {-0.1F}}});
  ASSERT_EQ(beam.active().size(), 1U);  // -1.5 is finished; -1.1 may win, -2.1 and -3.1 not
  EXPECT_EQ(beam.active().front().token, 5);
}

TEST(Beam, GoesOnUntilThereAreAsManyAsWereAskedFor) {
  Beam beam = make_beam(5, {.beam_size = 2, .n_best = 2});
  advance(beam, {{{kEos, 5, 6}, {-0.1F, -50, -60}, -0.1F}});
  EXPECT_FALSE(beam.done());
  advance(beam, {{{kEos, 5}, {-1, -20}, -1}, {{6}, {-20}}});
  EXPECT_TRUE(beam.done());
  EXPECT_EQ(beam.take_best().size(), 2U);
}

}  // namespace
}  // namespace attend
