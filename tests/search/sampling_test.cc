#include "attend/search/sampling.h"

#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/search/toy_search.h"

namespace attend {
namespace {

using Distribution = std::map<std::vector<int32_t>, double>;
constexpr std::size_t kLongest = 2;

/// What the options leave of the distribution of one step, transcribed from their definitions.
std::vector<std::pair<int32_t, double>> step_distribution(const ToyModel& model,
                                                          const std::vector<int32_t>& output,
                                                          const SearchOptions& options) {
  std::vector<std::pair<int32_t, double>> choices;
  double sum = 0;
  for (int32_t token = 2; token < model.vocabulary(); ++token) {
    const auto log_prob = static_cast<double>(model.log_prob(output, token));
    choices.emplace_back(token, std::exp(log_prob / options.temperature));
  }
  std::ranges::stable_sort(choices, std::ranges::greater(), [](const auto& c) { return c.second; });
  if (options.sampling_top_k > 0) {
    choices.resize(std::min(choices.size(), static_cast<std::size_t>(options.sampling_top_k)));
  }
  for (const auto& choice : choices) sum += choice.second;
  double kept = 0;
  std::size_t count = 0;
  while (count < choices.size() && kept < options.sampling_top_p * sum) {
    kept += choices[count++].second;
  }
  choices.resize(count);
  for (auto& choice : choices) choice.second /= kept;
  return choices;
}

void add_outputs(const ToyModel& model, const SearchOptions& options,
                 const std::vector<int32_t>& output, double probability, Distribution& outputs) {
  if (output.size() == kLongest) {
    outputs[output] += probability;
    return;
  }
  for (const auto& [token, share] : step_distribution(model, output, options)) {
    if (token == ToyModel::kEos) {
      outputs[output] += probability * share;
      continue;
    }
    std::vector<int32_t> longer = output;
    longer.push_back(token);
    add_outputs(model, options, longer, probability * share, outputs);
  }
}

/// Pearson's statistic must be within six standard deviations of its mean; rare outputs are taken
/// together.
void expect_distribution(const std::map<std::vector<int32_t>, int64_t>& drawn,
                         const Distribution& exact) {
  int64_t total = 0, rare_drawn = 0, cells = 0;
  for (const auto& [output, count] : drawn) {
    EXPECT_TRUE(exact.contains(output)) << "an output that cannot be drawn";
    total += count;
  }
  double statistic = 0, rare = 0;
  const auto add = [&](double expected, int64_t found) {
    statistic += std::pow(static_cast<double>(found) - expected, 2) / expected;
    ++cells;
  };
  for (const auto& [output, probability] : exact) {
    const double expected = probability * static_cast<double>(total);
    const auto found = drawn.find(output);
    const int64_t count = found == drawn.end() ? 0 : found->second;
    if (expected < 10) {
      rare += expected;
      rare_drawn += count;
    } else {
      add(expected, count);
    }
  }
  if (rare >= 10) add(rare, rare_drawn);
  const double freedom = std::max(static_cast<double>(cells - 1), 1.0);
  EXPECT_LT(statistic, freedom + 6 * std::sqrt(2 * freedom)) << cells << " cells";
  EXPECT_GT(cells, 1);
}

TEST(Sampling, DrawsFromTheDistributionThatTheOptionsSay) {
  std::vector<SearchOptions> cases(6, {.max_length = kLongest, .n_best = 1000, .sampling = true});
  cases[1].temperature = 0.5;
  cases[2].sampling_top_k = 3;
  cases[3].sampling_top_p = 0.8;
  cases[4].temperature = 2;
  cases[4].sampling_top_k = 3;
  cases[4].sampling_top_p = 0.9;
  cases[5].temperature = 3;
  cases[5].sampling_top_p = 0.6;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (const uint64_t model_seed : {1U, 2U, 3U}) {
      SCOPED_TRACE(fmt::format("case {}, model {}", i, model_seed));
      const ToyModel model(model_seed, 8);
      SearchOptions options = cases[i];
      std::map<std::vector<int32_t>, int64_t> drawn;
      for (options.seed = 1; options.seed <= 10; ++options.seed) {
        const auto samples = toy_search(model, options);
        ASSERT_EQ(samples.size(), 1000U);
        for (const Hypothesis& each : samples) {
          ++drawn[each.tokens];
          EXPECT_NEAR(each.log_prob, toy_log_prob(model, each.tokens), 1e-5);
        }
      }
      Distribution exact;
      add_outputs(model, options, {}, 1, exact);
      expect_distribution(drawn, exact);
    }
  }
}

TEST(Sampling, ASampleDependsOnSeedSourceAndNumberAlone) {
  std::size_t differ = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const ToyModel model(seed, 12);
    SearchOptions options{.max_length = 6, .sampling = true, .seed = seed};
    const auto one = toy_search(model, options);
    EXPECT_EQ(toy_search(model, options)[0].tokens, one[0].tokens);
    options.n_best = 5;
    const auto five = toy_search(model, options);
    ASSERT_EQ(five.size(), 5U);
    EXPECT_NE(std::ranges::find(five, one[0].tokens, &Hypothesis::tokens), five.end());
    EXPECT_TRUE(std::ranges::is_sorted(five, std::ranges::greater(), &Hypothesis::score));
    options.n_best = 1;
    options.seed = 1000 + seed;
    differ += toy_search(model, options)[0].tokens != one[0].tokens ? 1 : 0;
  }
  EXPECT_GT(differ, 10U);
  const SearchOptions options{.n_best = 1, .sampling = true};
  const std::vector<double> even(1000);
  const std::vector<int32_t> one_source = {5, 6}, other_source = {6, 5};
  Sampler sampler(one_source, options), other(other_source, options);
  EXPECT_NE(sampler.draw(even, 0, 0), other.draw(even, 0, 0));
  EXPECT_NE(sampler.draw(even, 0, 0), sampler.draw(even, 1, 0));
  EXPECT_NE(sampler.draw(even, 0, 0), sampler.draw(even, 0, 1));
}

TEST(Sampling, KeepsToTheRules) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const ToyModel model(seed);
    SearchTokens tokens = toy_tokens();
    tokens.suppressed_sequences = {{3, 4}};
    const SearchOptions options{.max_length = 3,
                                .min_length = 2,
                                .n_best = 50,
                                .no_repeat_ngram_size = 1,
                                .sampling = true};
    for (const Hypothesis& each : toy_search(model, options, {.prefix = {5}}, tokens)) {
      EXPECT_GE(each.tokens.size(), 2U);
      EXPECT_EQ(each.tokens[0], 5);
      EXPECT_FALSE(has_phrase(each.tokens, {3, 4}));
      std::vector<int32_t> sorted = each.tokens;
      std::ranges::sort(sorted);
      EXPECT_EQ(std::ranges::adjacent_find(sorted), sorted.end());
    }
  }
}

TEST(Sampling, AColdSampleIsGreedySearch) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const ToyModel model(seed);
    const auto greedy = toy_search(model, {.beam_size = 1, .max_length = 5});
    SearchOptions options{.max_length = 5, .sampling = true, .temperature = 1e-4};
    EXPECT_EQ(toy_search(model, options)[0].tokens, greedy[0].tokens);
    options.temperature = 1;
    options.sampling_top_k = 1;
    EXPECT_EQ(toy_search(model, options)[0].tokens, greedy[0].tokens);
    options.sampling_top_k = 0;
    options.sampling_top_p = 1e-9;
    EXPECT_EQ(toy_search(model, options)[0].tokens, greedy[0].tokens);
  }
}

}  // namespace
}  // namespace attend
