#include "attend/search/score.h"

#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "attend/kernels/compute_thread.h"
#include "attend/kernels/gemm.h"
#include "tests/search/models.h"
#include "tests/search/reference_model.h"

namespace attend {
namespace {

constexpr int64_t kVocabulary = 40;

using Scores = std::vector<std::vector<float>>;

Scores score_all(const Transformer& model, const std::vector<TokenPair>& pairs) {
  prepare_compute_thread();
  MemoryPool memory;
  Context context{.memory = &memory, .compute = model.compute()};
  Scores scores;
  for (PairScores& each : score_pairs(model, context, pairs, {})) {
    scores.push_back(std::move(each.log_probs));
  }
  return scores;
}

std::vector<TokenPair> random_pairs(int64_t count, uint64_t longest, uint64_t seed) {
  const TokenSequences sources = random_sources(count, 0, longest, kVocabulary, seed);
  const TokenSequences targets = random_sources(count, 0, longest, kVocabulary, seed + 1);
  std::vector<TokenPair> pairs;
  for (std::size_t i = 0; i < sources.size(); ++i) pairs.push_back({sources[i], targets[i]});
  return pairs;
}

TEST(ScorePairs, AreThoseOfAReferenceInDoublePrecision) {
  const auto model = random_model(search_config(kVocabulary), DType::kFloat32, 11);
  const testing::ReferenceModel reference(*model);
  const std::vector<TokenPair> pairs = random_pairs(6, 9, 5);
  const Scores found = score_all(*model, pairs);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto expected = reference.score(pairs[i].source, pairs[i].target).log_probs;
    ASSERT_EQ(found[i].size(), pairs[i].target.size() + 1);
    for (std::size_t t = 0; t < expected.size(); ++t) {
      EXPECT_NEAR(static_cast<double>(found[i][t]), expected[t], 2e-4) << "token " << t;
    }
  }
}

// The search decodes token by token, with caches; scoring runs the decoder over whole targets.
TEST(ScorePairs, AddUpToWhatTheSearchSaysOfItsOutputs) {
  for (const DType compute : {DType::kFloat32, DType::kBFloat16}) {
    if (compute == DType::kBFloat16 && !has_bfloat16_arithmetic()) continue;
    for (const TransformerConfig& config : search_configs(kVocabulary)) {
      const auto model = random_model(config, compute, 5);
      const TokenSequences sources = random_sources(10, 0, 20, kVocabulary, 2);
      const auto hypotheses = search_all(*model, sources, {.n_best = 4});
      for (std::size_t s = 0; s < sources.size(); ++s) {
        for (const Hypothesis& hypothesis : hypotheses[s]) {
          const Scores found = score_all(*model, {{sources[s], hypothesis.tokens}});
          double sum = 0;
          for (const float log_prob : found[0]) sum += static_cast<double>(log_prob);
          const double tolerance = compute == DType::kFloat32
                                       ? 1e-3
                                       : 0.05 + 0.01 * static_cast<double>(found[0].size());
          EXPECT_NEAR(sum, hypothesis.log_prob, tolerance);
        }
      }
    }
  }
}

TEST(ScorePairs, AttentionIsThatOfTheReference) {
  const auto model = random_model(search_config(kVocabulary), DType::kFloat32, 11);
  const testing::ReferenceModel reference(*model);
  const std::vector<TokenPair> pairs = random_pairs(6, 9, 5);
  Context context;
  prepare_compute_thread();
  for (int64_t layer = 0; layer < 2; ++layer) {
    const auto found =
        score_pairs(*model, context, pairs, {}, {.log_probs = false, .attention_layer = layer});
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const auto expected = reference.score(pairs[i].source, pairs[i].target)
                                .attention[static_cast<std::size_t>(layer)];
      EXPECT_TRUE(found[i].log_probs.empty());
      ASSERT_EQ(found[i].attention.size(), expected.size());
      for (std::size_t t = 0; t < expected.size(); ++t) {
        ASSERT_EQ(found[i].attention[t].size(), expected[t].size());
        for (std::size_t j = 0; j < expected[t].size(); ++j) {
          EXPECT_NEAR(static_cast<double>(found[i].attention[t][j]), expected[t][j], 1e-5);
        }
      }
    }
  }
}

TEST(ScorePairs, EveryKindOfModelAttends) {
  for (const TransformerConfig& config : search_configs(kVocabulary)) {
    const auto model = random_model(config, DType::kFloat32, 6);
    const std::vector<TokenPair> pairs = random_pairs(5, 12, 2);
    Context context;
    prepare_compute_thread();
    const auto plain = score_pairs(*model, context, pairs, {});
    const auto probed = score_pairs(*model, context, pairs, {}, {.attention_layer = 1});
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      EXPECT_EQ(probed[i].log_probs, plain[i].log_probs) << "looking changes nothing";
      EXPECT_TRUE(plain[i].attention.empty());
      ASSERT_EQ(probed[i].attention.size(), pairs[i].target.size() + 1);
      for (const std::vector<float>& row : probed[i].attention) {
        ASSERT_EQ(row.size(), pairs[i].source.size() + 1);
        EXPECT_NEAR(std::accumulate(row.begin(), row.end(), 0.0F), 1.0F, 1e-5F);
      }
      const auto alone =
          score_pairs(*model, context, std::span(pairs).subspan(i, 1), {}, {.attention_layer = 1});
      EXPECT_EQ(alone[0].attention, probed[i].attention) << "contract 6";
    }
  }
}

TEST(Contract6Score, APairDependsOnNothingElse) {
  for (const TransformerConfig& config : search_configs(kVocabulary)) {
    const auto model = random_model(config, DType::kFloat32, 9);
    std::vector<TokenPair> pairs = random_pairs(12, 30, 3);
    const Scores together = score_all(*model, pairs);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      EXPECT_EQ(score_all(*model, {pairs[i]})[0], together[i]) << "pair " << i;
    }
    std::reverse(pairs.begin(), pairs.end());
    Scores backwards = score_all(*model, pairs);
    std::reverse(backwards.begin(), backwards.end());
    EXPECT_EQ(backwards, together);
  }
}

TEST(ScorePairs, OfManyRowsAreThoseOfFew) {
  const auto model = random_model(search_config(kVocabulary), DType::kFloat32, 4);
  const std::vector<TokenPair> pairs = random_pairs(40, 30, 8);  // several tiles of logits
  const Scores found = score_all(*model, pairs);
  ASSERT_EQ(found.size(), pairs.size());
  EXPECT_EQ(found.back(), score_all(*model, {pairs.back()})[0]);
}

TEST(ScorePairs, WhatIsTooLongOrNoNumberIsAnError) {
  TransformerConfig config = search_config(kVocabulary);
  config.max_length = 8;
  const auto model = random_model(config, DType::kFloat32, 4);
  const std::vector<int32_t> seven(7, 5), eight(8, 5);
  EXPECT_EQ(score_all(*model, {{seven, seven}})[0].size(), 8U);
  EXPECT_THROW(score_all(*model, {{seven, eight}}), Error);
  EXPECT_THROW(score_all(*model, {{eight, seven}}), Error);
  const Tensor& table = model->parameters().find("output_projection").master;
  table.assign(std::vector<float>(static_cast<std::size_t>(table.count()), NAN));
  model->parameters().refresh_compute();
  EXPECT_THROW(score_all(*model, {{seven, seven}}), Error);
}

}  // namespace
}  // namespace attend
