#include "attend/data/lexical_model.h"

#include <cmath>
#include <utility>

#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "attend/base/random.h"

namespace attend {
namespace {

using Pairs = std::vector<std::pair<std::vector<int32_t>, std::vector<int32_t>>>;

ForEachPair each_of(const Pairs& pairs) {
  return [&pairs](const UsePair& use) {
    for (const auto& [source, target] : pairs) use(source, target);
  };
}

/// Sources 0 and 1, targets 0 and 1: "0 1" is "0 1", and "0" is "0".
const Pairs kWorked = {{{0, 1}, {0, 1}}, {{0}, {0}}};

TEST(LexicalModel, OneIterationByHand) {
  // Each target of the first sentence gives a third to the empty word, 0 and 1; that of the second
  // a half to the empty word and 0. So 0 has 5/6 of target 0 and 1/3 of target 1.
  const auto model =
      train_lexical_model(each_of(kWorked), {.source_vocabulary = 2, .iterations = 1});
  ASSERT_EQ(model.targets.size(), 2U);
  ASSERT_EQ(model.targets[0].size(), 2U);
  EXPECT_EQ(model.targets[0][0].token, 0);
  EXPECT_FLOAT_EQ(model.targets[0][0].probability, 5.0F / 7);
  EXPECT_FLOAT_EQ(model.targets[0][1].probability, 2.0F / 7);
  EXPECT_FLOAT_EQ(model.targets[1][0].probability, 0.5F);
  EXPECT_EQ(model.targets[1][0].token, 0) << "of equal ones the lower id";
  EXPECT_TRUE(model.log_likelihoods.empty());
}

TEST(LexicalModel, TwoIterationsByHand) {
  // Target 0 of the first sentence: 5/7 + 5/7 + 1/2 = 27/14, so 0 gets 10/27 and 1 gets 7/27.
  // Target 1: 2/7 + 2/7 + 1/2 = 15/14, so 0 gets 4/15 and 1 gets 7/15. The second sentence: a half.
  // Source 0: 10/27 + 1/2 = 235/270 and 4/15 = 72/270. Source 1: 7/27 and 7/15, or 5/14 and 9/14.
  const auto model =
      train_lexical_model(each_of(kWorked), {.source_vocabulary = 2, .iterations = 2});
  EXPECT_FLOAT_EQ(model.targets[0][0].probability, 235.0F / 307);
  EXPECT_FLOAT_EQ(model.targets[0][1].probability, 72.0F / 307);
  EXPECT_EQ(model.targets[1][0].token, 1);
  EXPECT_FLOAT_EQ(model.targets[1][0].probability, 9.0F / 14);
  EXPECT_FLOAT_EQ(model.targets[1][1].probability, 5.0F / 14);
  // Under the probabilities of the first: (27/14) / 3, (15/14) / 3 and (10/7) / 2.
  ASSERT_EQ(model.log_likelihoods.size(), 1U);
  EXPECT_NEAR(model.log_likelihoods[0], std::log(9.0 / 14 * 5 / 14 * 5 / 7), 1e-6);
}

/// Source s is translated by s + 1, with a token 0 thrown in, in another order.
Pairs dictionary_pairs(int32_t words, int count) {
  RandomGenerator random(7);
  Pairs pairs;
  for (int i = 0; i < count; ++i) {
    auto& [source, target] = pairs.emplace_back();
    for (uint64_t n = 2 + random.uniform_index(5); n > 0; --n) {
      source.push_back(static_cast<int32_t>(random.uniform_index(static_cast<uint64_t>(words))));
      target.insert(target.begin(), source.back() + 1);
    }
    target.push_back(0);
  }
  return pairs;
}

TEST(LexicalModel, FindsADictionary) {
  const Pairs pairs = dictionary_pairs(30, 1000);
  const LexicalModelOptions options{.source_vocabulary = 31, .most_targets = 3};
  const auto model = train_lexical_model(each_of(pairs), options);
  for (std::size_t s = 0; s < 30; ++s) {
    ASSERT_LE(model.targets[s].size(), 3U);
    EXPECT_EQ(model.targets[s][0].token, static_cast<int32_t>(s) + 1);
    for (std::size_t i = 1; i < model.targets[s].size(); ++i) {
      EXPECT_GE(model.targets[s][i - 1].probability, model.targets[s][i].probability);
    }
  }
  EXPECT_TRUE(model.targets[30].empty()) << "is not in the text";
  for (std::size_t i = 1; i < model.log_likelihoods.size(); ++i) {
    EXPECT_GT(model.log_likelihoods[i], model.log_likelihoods[i - 1]);
  }
  EXPECT_EQ(train_lexical_model(each_of(pairs), options).targets, model.targets);
}

TEST(LexicalModel, FindsItInBoundedMemory) {
  const Pairs pairs = dictionary_pairs(100, 3000);  // of 10 000 pairs of tokens
  const auto model = train_lexical_model(
      each_of(pairs), {.source_vocabulary = 100, .most_targets = 1, .most_entries = 3000});
  for (std::size_t s = 0; s < 100; ++s) {
    ASSERT_EQ(model.targets[s].size(), 1U);
    EXPECT_EQ(model.targets[s][0].token, static_cast<int32_t>(s) + 1);
  }
}

TEST(LexicalModel, RefusesWhatItCannotUse) {
  EXPECT_THROW(train_lexical_model(each_of(kWorked), {.source_vocabulary = 1}), Error);
  EXPECT_THROW(train_lexical_model(each_of(kWorked), {.source_vocabulary = 2, .iterations = 0}),
               UsageError);
  const auto model = train_lexical_model(each_of({}), {.source_vocabulary = 2});
  EXPECT_TRUE(model.targets[0].empty());
}

}  // namespace
}  // namespace attend
