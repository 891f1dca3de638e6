#include "attend/search/beam_search.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "attend/kernels/gemm.h"
#include "tests/search/models.h"

namespace attend {
namespace {

constexpr int64_t kVocabulary = 40;

std::vector<DType> dtypes() {
  if (has_bfloat16_arithmetic()) return {DType::kFloat32, DType::kBFloat16};
  return {DType::kFloat32};
}

/// All outputs of up to `longest` of the tokens 3 … vocabulary - 1.
TokenSequences all_outputs(int64_t vocabulary, std::size_t longest) {
  TokenSequences outputs = {{}};
  for (std::size_t i = 0; outputs[i].size() < longest; ++i) {
    for (int32_t token = 3; token < vocabulary; ++token) {
      std::vector<int32_t> longer = outputs[i];
      longer.push_back(token);
      outputs.push_back(std::move(longer));
      if (i + 1 == outputs.size()) break;
    }
  }
  return outputs;
}

TEST(BeamSearch, ABeamThatHoldsEverythingFindsTheBest) {
  constexpr int64_t kFew = 6;
  const TokenSequences outputs = all_outputs(kFew, 4);
  ASSERT_EQ(outputs.size(), 121U);
  const SearchOptions options{.beam_size = 128, .max_extra_length = 2, .n_best = 121};
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const auto model = random_model(search_config(kFew), DType::kFloat32, seed, 1.5F);
    const TokenSequences sources = random_sources(2, 2, 2, kFew, seed);
    const auto found = search_all(*model, sources, options);
    for (std::size_t s = 0; s < sources.size(); ++s) {
      std::vector<std::pair<double, std::vector<int32_t>>> ranked;
      for (const std::vector<int32_t>& output : outputs) {
        const double log_prob = log_prob_in_full(*model, sources[s], output);
        ranked.emplace_back(length_penalized(log_prob, std::ssize(output) + 1, 0.6), output);
      }
      std::sort(ranked.rbegin(), ranked.rend());
      ASSERT_EQ(found[s].size(), ranked.size());
      for (std::size_t i = 0; i < ranked.size(); ++i) {
        EXPECT_NEAR(found[s][i].score, ranked[i].first, 1e-4) << "rank " << i;
      }
      EXPECT_EQ(found[s][0].tokens, ranked[0].second);
    }
  }
}

TEST(BeamSearch, GreedyTakesTheBestTokenOfEveryStep) {
  for (const TransformerConfig& config : search_configs(kVocabulary)) {
    const auto model = random_model(config, DType::kFloat32, 7);
    const TokenSequences sources = random_sources(12, 1, 12, kVocabulary, 3);
    const auto found = search_all(*model, sources, {.beam_size = 1, .max_extra_length = 20});
    for (std::size_t s = 0; s < sources.size(); ++s) {
      std::vector<int32_t> output;
      const std::size_t longest = sources[s].size() + 20;
      while (output.size() < longest) {
        std::vector<double> last = decode_in_full(*model, sources[s], output).back();
        last[0] = last[1] = -1e30;
        const auto best = std::max_element(last.begin(), last.end()) - last.begin();
        if (best == 2) break;
        output.push_back(static_cast<int32_t>(best));
      }
      EXPECT_EQ(found[s].front().tokens, output) << "sentence " << s;
    }
  }
}

TEST(BeamSearch, LogProbabilitiesAreThoseOfAFullDecode) {
  std::size_t shortest = 1000, longest = 0;
  for (const TransformerConfig& config : search_configs(kVocabulary)) {
    const auto model = random_model(config, DType::kFloat32, 5);
    const TokenSequences sources = random_sources(10, 0, 20, kVocabulary, 2);
    const auto found = search_all(*model, sources, {.n_best = 4});
    for (std::size_t s = 0; s < sources.size(); ++s) {
      ASSERT_FALSE(found[s].empty());
      for (const Hypothesis& hypothesis : found[s]) {
        const double expected = log_prob_in_full(*model, sources[s], hypothesis.tokens);
        EXPECT_NEAR(hypothesis.log_prob, expected, 1e-3);
        EXPECT_EQ(hypothesis.score,
                  length_penalized(hypothesis.log_prob, std::ssize(hypothesis.tokens) + 1, 0.6));
        shortest = std::min(shortest, hypothesis.tokens.size());
        longest = std::max(longest, hypothesis.tokens.size());
      }
      EXPECT_TRUE(std::is_sorted(
          found[s].begin(), found[s].end(),
          [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; }));
    }
  }
  EXPECT_LT(shortest, 10U) << "the models of this test are to end outputs by themselves";
  EXPECT_GT(longest, 40U) << "the caches of this test are to grow";
}

TEST(BeamSearch, StoppingEarlyChangesNoAnswer) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const auto model = random_model(search_config(kVocabulary), DType::kFloat32, seed, 2.0F);
    const TokenSequences sources = random_sources(20, 1, 15, kVocabulary, seed);
    const auto one = search_all(*model, sources, {.n_best = 1});
    const auto four = search_all(*model, sources, {.n_best = 4});
    for (std::size_t s = 0; s < sources.size(); ++s) {
      EXPECT_EQ(one[s].front().tokens, four[s].front().tokens);
      EXPECT_EQ(one[s].front().log_prob, four[s].front().log_prob);
    }
  }
}

TEST(BeamSearch, OutputsAreWithinTheLimitAndHoldNothingSuppressed) {
  TransformerConfig config = search_config(kVocabulary);
  config.max_length = 16;
  const auto model = random_model(config, DType::kFloat32, 3);
  const TokenSequences sources = random_sources(30, 1, 15, kVocabulary, 5);
  const SearchTokens tokens{.suppressed = {0, 7, 9}};
  const SearchOptions options{.max_extra_length = 3, .n_best = 4};
  const auto found = search_all(*model, sources, options, tokens);
  std::size_t at_the_limit = 0;
  for (std::size_t s = 0; s < sources.size(); ++s) {
    for (const Hypothesis& hypothesis : found[s]) {
      const std::size_t limit = std::min<std::size_t>(sources[s].size() + 3, 15);
      EXPECT_LE(hypothesis.tokens.size(), limit);
      at_the_limit += hypothesis.tokens.size() == limit ? 1 : 0;
      for (const int32_t token : {0, 1, 2, 7, 9}) {
        EXPECT_EQ(std::count(hypothesis.tokens.begin(), hypothesis.tokens.end(), token), 0);
      }
    }
  }
  EXPECT_GT(at_the_limit, 0U);
}

TEST(BeamSearch, ASourceThatIsTooLongIsAnError) {
  const auto model = random_model(search_config(kVocabulary), DType::kFloat32, 3);
  EXPECT_NO_THROW(
      search_all(*model, random_sources(1, 127, 127, kVocabulary, 1), {.beam_size = 1}));
  EXPECT_THROW(search_all(*model, random_sources(1, 128, 128, kVocabulary, 1), {}), Error);
}

TEST(BeamSearch, WeightsThatAreNotNumbersAreAnError) {
  const auto model = random_model(search_config(kVocabulary), DType::kFloat32, 3);
  const Tensor& table = model->parameters().find("output_projection").master;
  std::vector<float> values = table.to_vector();
  for (const float bad : {NAN, INFINITY}) {
    values[300] = bad;
    table.assign(values);
    EXPECT_THROW(search_all(*model, random_sources(3, 1, 5, kVocabulary, 1), {}), Error);
  }
}

TEST(BeamSearch, TheBudgetCountsHypotheses) {
  EXPECT_EQ(search_cost(13, {.beam_size = 4}), 4 * search_cost(13, {.beam_size = 1}));
  EXPECT_EQ(search_budget({.batch_tokens = 100}), 400);
  const auto chosen = [](const char* name) {
    return with_batch_tokens({}, preset(name)).batch_tokens;
  };
  EXPECT_LT(chosen("tiny"), chosen("base"));
  EXPECT_EQ(with_batch_tokens({.batch_tokens = 7}, preset("base")).batch_tokens, 7);
  EXPECT_GT(search_cost(0, {}), 0);
}

// ------------------------------------------------------------------------------ contract 6

using Results = std::vector<std::vector<Hypothesis>>;

void expect_same(const Results& found, const Results& expected, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t s = 0; s < expected.size(); ++s) {
    ASSERT_EQ(found[s].size(), expected[s].size()) << what << ", sentence " << s;
    for (std::size_t i = 0; i < expected[s].size(); ++i) {
      EXPECT_EQ(found[s][i].tokens, expected[s][i].tokens) << what << ", sentence " << s;
      EXPECT_EQ(found[s][i].log_prob, expected[s][i].log_prob) << what << ", sentence " << s;
      EXPECT_EQ(found[s][i].score, expected[s][i].score) << what << ", sentence " << s;
    }
  }
}

Results in_batches(const Transformer& model, const TokenSequences& sources,
                   const SearchOptions& options, std::size_t size) {
  Results results;
  for (std::size_t first = 0; first < sources.size(); first += size) {
    const auto begin = sources.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = begin + static_cast<std::ptrdiff_t>(std::min(size, sources.size() - first));
    for (auto& best : search_all(model, {begin, end}, options)) results.push_back(std::move(best));
  }
  return results;
}

Results in_order_of_length(const Transformer& model, const TokenSequences& sources,
                           const SearchOptions& options) {
  std::vector<std::size_t> order(sources.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return sources[a].size() > sources[b].size();
  });
  TokenSequences sorted;
  for (const std::size_t i : order) sorted.push_back(sources[i]);
  Results results(sources.size()), found = search_all(model, sorted, options);
  for (std::size_t i = 0; i < order.size(); ++i) results[order[i]] = std::move(found[i]);
  return results;
}

TEST(Contract06, TheAnswerDoesNotDependOnTheBatch) {
  const TokenSequences sources = random_sources(64, 0, 20, kVocabulary, 11);
  const SearchOptions large{.n_best = 4, .batch_tokens = 1'000'000};
  SearchOptions small = large;
  small.batch_tokens = 50;
  for (const DType dtype : dtypes()) {
    for (const TransformerConfig& config : search_configs(kVocabulary)) {
      const auto model = random_model(config, dtype, 2);
      const Results expected = in_batches(*model, sources, large, 64);
      expect_same(in_batches(*model, sources, large, 1), expected, "one by one");
      expect_same(in_batches(*model, sources, large, 7), expected, "by sevens");
      expect_same(in_batches(*model, sources, small, 64), expected, "small budget");
      expect_same(in_order_of_length(*model, sources, large), expected, "sorted");
    }
  }
}

}  // namespace
}  // namespace attend
