#include "attend/search/beam.h"

#include <gtest/gtest.h>

#include "attend/search/beam_caches.h"
#include "tests/search/models.h"

namespace attend {
namespace {

constexpr int32_t kEos = 2;

std::vector<std::vector<int32_t>> tokens_of(const Beam& beam) {
  std::vector<std::vector<int32_t>> tokens;
  for (const ActiveHypothesis& hypothesis : beam.active()) tokens.push_back(hypothesis.tokens);
  return tokens;
}

void advance(Beam& beam, std::vector<Candidate> candidates) { beam.advance(candidates); }

TEST(Beam, KeepsTheBestInOrder) {
  Beam beam(10, {}, {.beam_size = 2});
  advance(beam, {{-3, 0, 5}, {-1, 0, 6}, {-2, 0, 7}});
  EXPECT_EQ(tokens_of(beam), (TokenSequences{{1, 6}, {1, 7}}));
  advance(beam, {{-5, 0, 8}, {-2.5, 1, 9}, {-4, 1, 8}, {-6, 0, 9}});
  EXPECT_EQ(tokens_of(beam), (TokenSequences{{1, 7, 9}, {1, 7, 8}}));
  EXPECT_EQ(beam.active().front().log_prob, -2.5);
}

TEST(Beam, EqualOnesRankByParentThenByToken) {
  Beam beam(10, {}, {.beam_size = 3});
  advance(beam, {{-1, 0, 9}, {-1, 0, 4}, {-1, 0, 6}, {-1, 0, 5}});
  EXPECT_EQ(tokens_of(beam), (TokenSequences{{1, 4}, {1, 5}, {1, 6}}));
  advance(beam, {{-2, 2, 3}, {-2, 0, 8}, {-2, 1, 7}, {-2, 0, 7}});
  EXPECT_EQ(tokens_of(beam), (TokenSequences{{1, 4, 7}, {1, 4, 8}, {1, 5, 7}}));
}

TEST(Beam, AnEndOfSentenceDoesNotShrinkTheBeam) {
  Beam beam(10, {}, {.beam_size = 2});
  advance(beam, {{-1, 0, kEos}, {-2, 0, 5}, {-3, 0, 6}, {-4, 0, 7}});
  EXPECT_EQ(tokens_of(beam), (TokenSequences{{1, 5}, {1, 6}}));
}

TEST(Beam, AnEndOfSentenceBehindTheBeamIsNone) {
  Beam beam(1, {}, {.beam_size = 2});
  advance(beam, {{-1, 0, 5}, {-2, 0, 6}, {-2.5, 0, kEos}, {-3, 0, 7}});
  ASSERT_TRUE(beam.must_end());
  advance(beam, {{-9, 0, kEos}, {-8, 1, kEos}});
  EXPECT_TRUE(beam.done());
  EXPECT_EQ(beam.take_best().front().tokens, std::vector<int32_t>{6});
}

TEST(Beam, ScoresHaveTheLengthPenaltyOfWuEtAl) {
  EXPECT_DOUBLE_EQ(length_penalized(-6, 1, 0.6), -6);
  EXPECT_DOUBLE_EQ(length_penalized(-6, 7, 1), -3);
  EXPECT_DOUBLE_EQ(length_penalized(-6, 19, 0.5), -3);
  EXPECT_DOUBLE_EQ(length_penalized(-6, 19, 0), -6);
  Beam beam(10, {}, {.beam_size = 2, .length_penalty = 1});
  advance(beam, {{-1, 0, 5}, {-2, 0, kEos}});
  advance(beam, {{-3, 0, kEos}, {-30, 0, 6}});
  const std::vector<Hypothesis> best = beam.take_best();
  ASSERT_EQ(best.size(), 1U);
  EXPECT_TRUE(best[0].tokens.empty());  // -2 / (6 / 6) against -3 / (7 / 6)
  EXPECT_DOUBLE_EQ(best[0].score, -2);
}

TEST(Beam, StopsOnceNoActiveOneCanStillWin) {
  // At the greatest length, 6 with its end of sentence, the penalty divides by 11 / 6.
  Beam beam(5, {}, {.beam_size = 2, .length_penalty = 1});
  advance(beam, {{-2, 0, kEos}, {-3.6, 0, 5}, {-5, 0, 6}});
  EXPECT_FALSE(beam.done());  // -3.6 / (11 / 6) > -2
  advance(beam, {{-3.7, 0, 5}, {-5, 0, 6}});
  EXPECT_TRUE(beam.done());  // -3.7 / (11 / 6) < -2
}

TEST(Beam, GoesOnUntilThereAreAsManyAsWereAskedFor) {
  Beam beam(5, {}, {.beam_size = 2, .n_best = 2});
  advance(beam, {{-0.1, 0, kEos}, {-50, 0, 5}, {-60, 0, 6}});
  EXPECT_FALSE(beam.done());
  advance(beam, {{-51, 0, kEos}, {-70, 0, 5}, {-80, 1, 6}});
  EXPECT_TRUE(beam.done());
  EXPECT_EQ(beam.take_best().size(), 2U);
}

TEST(BeamCaches, GiveUpSlotsThatNobodyHoldsBeforeTheyGrow) {
  const auto model = random_model(search_config(20), DType::kFloat32, 1);
  MemoryPool memory;
  Context context{.memory = &memory};
  const EncoderOutput encoded = model->encode(
      context,
      {{5, 6, 2}, std::make_shared<const std::vector<int64_t>>(std::vector<int64_t>{0, 3})});
  BeamCaches caches(*model, context, encoded, 8);
  std::vector<Beam> beams(1, Beam(100, {}, {}));
  for (int step = 0; step < 100; ++step) {
    caches.reserve(2, beams);
    beams[0].active()[0].slots = {static_cast<int32_t>(caches.first_free())};
    caches.use(2);
  }
  EXPECT_EQ(caches.slots(), 8);
  for (int step = 0; step < 100; ++step) {
    caches.reserve(1, beams);
    beams[0].active()[0].slots.push_back(static_cast<int32_t>(caches.first_free()));
    caches.use(1);
  }
  EXPECT_GE(caches.slots(), 101);
  EXPECT_LE(caches.slots(), 256);
}

}  // namespace
}  // namespace attend
