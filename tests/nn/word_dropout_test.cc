#include "attend/nn/word_dropout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace attend::testing {
namespace {

Offsets equal_sentences(int64_t count, int64_t length) {
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i <= count; ++i) offsets.push_back(i * length);
  return std::make_shared<const std::vector<int64_t>>(std::move(offsets));
}

std::vector<float> draw(float rate, KeptToken kept, const RandomKey& key = {5, 1, 0}) {
  Context context;
  context.training = true;
  context.random = key;
  return draw_word_dropout(context, rate, equal_sentences(1000, 8), kept);
}

TEST(WordDropout, DropsTheShareAskedForKeepsTheMeanAndSparesTheKeptToken) {
  for (const auto& [kept, spared] : {std::pair(KeptToken::kFirst, 0U), {KeptToken::kLast, 7U}}) {
    for (const float rate : {0.05F, 0.1F, 0.5F}) {
      const std::vector<float> factors = draw(rate, kept);
      ASSERT_EQ(factors.size(), 8000U);
      double dropped = 0, sum = 0;
      for (std::size_t i = 0; i < factors.size(); ++i) {
        if (i % 8 == spared) {
          EXPECT_EQ(factors[i], 1.0F);
          continue;
        }
        EXPECT_TRUE(factors[i] == 0.0F || std::abs(factors[i] * (1 - rate) - 1) < 1e-4F);
        dropped += factors[i] == 0.0F ? 1 : 0;
        sum += static_cast<double>(factors[i]);
      }
      const double expected = static_cast<double>(rate);
      const double deviation = std::sqrt(expected * (1 - expected) / 7000);
      EXPECT_NEAR(dropped / 7000, expected, 4 * deviation);
      EXPECT_NEAR(sum / 7000, 1, 4 * deviation / (1 - expected));
    }
  }
}

TEST(WordDropout, IsAFunctionOfTheKey) {
  const std::vector<float> factors = draw(0.3F, KeptToken::kFirst);
  EXPECT_EQ(factors, draw(0.3F, KeptToken::kFirst));
  for (const RandomKey& other : {RandomKey{6, 1, 0}, RandomKey{5, 2, 0}, RandomKey{5, 1, 1}}) {
    EXPECT_NE(factors, draw(0.3F, KeptToken::kFirst, other));
  }
}

TEST(WordDropout, IsOfTrainingAlone) {
  Context context;
  EXPECT_TRUE(draw_word_dropout(context, 0.3F, equal_sentences(2, 3), KeptToken::kLast).empty());
  EXPECT_TRUE(draw(0, KeptToken::kLast).empty());
  EXPECT_EQ(context.random.op, 0U) << "what is off draws nothing";
}

}  // namespace
}  // namespace attend::testing
