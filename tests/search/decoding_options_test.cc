// Every option against brute force over a toy model. A beam that holds everything finds the best
// of all outputs that the option allows, by the score that the option says.

#include <set>

#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "attend/search/hypothesis_score.h"
#include "tests/search/models.h"
#include "tests/search/toy_search.h"

namespace attend {
namespace {

constexpr std::size_t kLongest = 4;
constexpr std::size_t kBest = 12;

/// Holds all outputs of kLongest words.
SearchOptions exhaustive() {
  return {.beam_size = 1000,
          .length_penalty_kind = LengthPenalty::kNone,
          .max_length = kLongest,
          .n_best = kBest};
}

bool anything(const std::vector<int32_t>&) { return true; }

/// Runs `test` with several models.
void with_models(const std::function<void(const ToyModel&)>& test) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    test(ToyModel(seed));
  }
}

TEST(DecodingOptions, LengthPenaltiesRankWholeOutputs) {
  with_models([](const ToyModel& model) {
    const auto expect_ranked_by = [&](const SearchOptions& options, const auto& divisor) {
      const auto score = [&](const std::vector<int32_t>& output) {
        return toy_log_prob(model, output) / divisor(static_cast<double>(output.size() + 1));
      };
      expect_found(toy_search(model, options), brute_force(model, kLongest, score, anything),
                   kBest);
    };
    SearchOptions options = exhaustive();
    expect_ranked_by(options, [](double) { return 1.0; });
    options.length_penalty_kind = LengthPenalty::kAverage;
    expect_ranked_by(options, [](double length) { return length; });
    options.length_penalty_kind = LengthPenalty::kGnmt;
    options.length_penalty = 1.7;
    expect_ranked_by(options, [](double length) { return std::pow((5 + length) / 6, 1.7); });
  });
}

TEST(DecodingOptions, CoverageMarksDownWhatWasNotAttendedTo) {
  std::size_t changed = 0;
  with_models([&](const ToyModel& model) {
    const auto score = [&](const std::vector<int32_t>& output) {
      std::vector<double> attended(static_cast<std::size_t>(model.source_tokens()));
      for (std::size_t step = 0; step <= output.size(); ++step) {
        const auto end = output.begin() + static_cast<std::ptrdiff_t>(step);
        const std::vector<float> weights = model.attention({output.begin(), end});
        for (std::size_t i = 0; i < attended.size(); ++i) {
          attended[i] += static_cast<double>(weights[i]);
        }
      }
      double penalty = 0;
      for (const double sum : attended) penalty += std::log(std::min(sum, 1.0));
      return toy_log_prob(model, output) + 0.8 * penalty;
    };
    SearchOptions options = exhaustive();
    const auto without = toy_search(model, options);
    options.coverage_penalty = 0.8;
    const auto found = toy_search(model, options);
    expect_found(found, brute_force(model, kLongest, score, anything), kBest);
    EXPECT_NEAR(found[0].log_prob, toy_log_prob(model, found[0].tokens), 1e-5);
    changed += found[0].tokens != without[0].tokens ? 1 : 0;
    // One that stops as soon as it may says the same.
    options.n_best = 1;
    EXPECT_EQ(toy_search(model, options)[0].tokens, found[0].tokens);
  });
  EXPECT_GT(changed, 0U);
}

TEST(DecodingOptions, CoverageIsOfTheModelsAttention) {
  const auto model = random_model(search_config(40), DType::kFloat32, 4);
  const TokenSequences sources = random_sources(5, 4, 8, 40, 1);
  // Three tokens and the end look four times at five or more: too little for each to get 1.
  const SearchOptions plain{.max_length = 3};
  SearchOptions covered = plain;
  // Each of up to 9 source tokens, with the end of sentence, takes away so much at most.
  covered.coverage_penalty = 0.1;
  const auto found = search_all(*model, sources, covered);
  for (std::size_t s = 0; s < sources.size(); ++s) {
    const Hypothesis& best = found[s].front();
    const double penalty =
        best.score - length_penalized(best.log_prob, std::ssize(best.tokens) + 1, plain);
    EXPECT_GT(penalty, 0.1 * 9 * std::log(1e-9));
    EXPECT_LT(penalty, 0) << "a token that little attention went to";
  }
}

TEST(DecodingOptions, RepetitionCostsMore) {
  with_models([](const ToyModel& model) {
    const auto score = [&](const std::vector<int32_t>& output) {
      std::vector<int32_t> before;
      double sum = 0;
      for (const int32_t token : output) {
        const bool again = std::ranges::find(before, token) != before.end();
        sum += static_cast<double>(model.log_prob(before, token)) * (again ? 1.5 : 1.0);
        before.push_back(token);
      }
      return sum + static_cast<double>(model.log_prob(before, ToyModel::kEos));
    };
    SearchOptions options = exhaustive();
    options.repetition_penalty = 1.5;
    const auto found = toy_search(model, options);
    expect_found(found, brute_force(model, kLongest, score, anything), kBest);
    for (const Hypothesis& each : found) {
      EXPECT_NEAR(each.log_prob, toy_log_prob(model, each.tokens), 1e-5) << "is the model's";
    }
  });
}

/// The best allowed ones by log P.
void expect_best_allowed(const ToyModel& model, const std::vector<Hypothesis>& found,
                         const Allowed& allowed, std::size_t longest = kLongest) {
  const auto score = [&](const std::vector<int32_t>& output) {
    return toy_log_prob(model, output);
  };
  expect_found(found, brute_force(model, longest, score, allowed), kBest);
}

TEST(DecodingOptions, NoNgramIsRepeated) {
  with_models([](const ToyModel& model) {
    for (const std::size_t n : {1U, 2U, 3U}) {
      SearchOptions options = exhaustive();
      options.max_length = 5;
      options.no_repeat_ngram_size = static_cast<int64_t>(n);
      const auto allowed = [n](const std::vector<int32_t>& output) {
        std::set<std::vector<int32_t>> known;
        for (std::size_t i = 0; i + n <= output.size(); ++i) {
          const auto first = output.begin() + static_cast<std::ptrdiff_t>(i);
          if (!known.emplace(first, first + static_cast<std::ptrdiff_t>(n)).second) return false;
        }
        return true;
      };
      expect_best_allowed(model, toy_search(model, options), allowed, 5);
    }
  });
}

TEST(DecodingOptions, LengthsAreWithinTheirLimits) {
  with_models([](const ToyModel& model) {
    SearchOptions options = exhaustive();
    options.min_length = 2;
    options.max_length = 3;
    const auto allowed = [](const std::vector<int32_t>& output) { return output.size() >= 2; };
    expect_best_allowed(model, toy_search(model, options), allowed, 3);
    options.beam_size = options.n_best = 1;
    EXPECT_GE(toy_search(model, options)[0].tokens.size(), 2U);
    // Beyond what the input allows, since it was asked for; but not beyond the model.
    options.min_length = 5;
    options.max_length = 0;
    options.max_extra_length = 0;
    EXPECT_EQ(toy_search(model, options)[0].tokens.size(), 5U);
    EXPECT_EQ(toy_search(model, options, {}, toy_tokens(), 0, 4)[0].tokens.size(), 4U);
  });
}

TEST(DecodingOptions, WhatIsSuppressedNeverComes) {
  SearchTokens tokens = toy_tokens();
  tokens.suppressed.push_back(5);
  tokens.suppressed_sequences = {{3, 4}, {4, 4, 3}};
  with_models([&](const ToyModel& model) {
    const auto allowed = [](const std::vector<int32_t>& output) {
      return !has_phrase(output, {5}) && !has_phrase(output, {3, 4}) &&
             !has_phrase(output, {4, 4, 3});
    };
    expect_best_allowed(model, toy_search(model, exhaustive(), {}, tokens), allowed);
  });
}

TEST(DecodingOptions, APrefixIsForcedAndCounts) {
  const std::vector<int32_t> prefix = {5, 3};
  with_models([&](const ToyModel& model) {
    const auto allowed = [&](const std::vector<int32_t>& output) {
      return output.size() >= 2 && std::equal(prefix.begin(), prefix.end(), output.begin());
    };
    const auto found = toy_search(model, exhaustive(), {.prefix = prefix});
    expect_best_allowed(model, found, allowed);
    const SearchOptions narrow{.beam_size = 1, .max_length = 1};
    EXPECT_EQ(toy_search(model, narrow, {.prefix = prefix})[0].tokens, prefix);
    const SearchOptions groups{.beam_size = 4, .n_best = 4, .beam_groups = 2};
    for (const Hypothesis& each : toy_search(model, groups, {.prefix = prefix})) {
      EXPECT_TRUE(allowed(each.tokens));
    }
  });
  const ToyModel model(1);
  EXPECT_THROW(toy_search(model, {}, {.prefix = {5, 3, 4}}, toy_tokens(), 0, 2), Error);
  EXPECT_THROW(toy_search(model, {}, {.prefix = {6}}), Error);
}

TEST(DecodingOptions, TheBestWithAllRequiredPhrasesIsFound) {
  const std::vector<std::vector<std::vector<int32_t>>> cases = {
      {{3}},         {{3}, {4}, {5}}, {{3, 4}}, {{3, 3, 4}}, {{3, 4}, {4, 5}},
      {{5, 5}, {3}}, {{3, 4}, {4}}};
  with_models([&](const ToyModel& model) {
    for (const auto& required : cases) {
      const auto allowed = [&](const std::vector<int32_t>& output) {
        return std::ranges::all_of(required,
                                   [&](const auto& phrase) { return has_phrase(output, phrase); });
      };
      // Room is kept for phrases one after the other, so outputs where they overlap at the very
      // end may be missed.
      const bool overlap = required == std::vector<std::vector<int32_t>>{{3, 4}, {4, 5}};
      const auto best = toy_search(model, exhaustive(), {.required = required});
      if (!overlap) expect_best_allowed(model, best, allowed);
      for (const int64_t beam_size : {1, 2, 4, 10}) {
        const SearchOptions narrow{.beam_size = beam_size, .max_length = 1, .n_best = beam_size};
        const auto found = toy_search(model, narrow, {.required = required});
        ASSERT_FALSE(found.empty());
        for (const Hypothesis& each : found) EXPECT_TRUE(allowed(each.tokens));
      }
    }
  });
}

TEST(DecodingOptions, RequiredPhrasesThatCannotBeAreErrors) {
  const ToyModel model(1);
  EXPECT_THROW(toy_search(model, {}, {.required = {{3, 0}}}), Error);
  EXPECT_THROW(toy_search(model, {}, {.required = {{3, 4, 5}}}, toy_tokens(), 0, 2), Error);
  EXPECT_THROW(toy_search(model, {.sampling = true}, {.required = {{3}}}), UsageError);
  EXPECT_THROW(toy_search(model, {.beam_groups = 2}, {.required = {{3}}}), UsageError);
  EXPECT_THROW(toy_search(model, {}, {.required = {{6}}}), Error);
  std::vector<std::vector<int32_t>> many;
  for (int32_t i = 3; i < 68; ++i) many.push_back({i});
  EXPECT_THROW(toy_search(model, {}, {.required = many}), Error);
}

TEST(DecodingOptions, AnOutputComesWhereTheRulesLeaveNothing) {
  SearchTokens tokens;
  tokens.suppressed = {0, 3, 4, 5};
  with_models([&](const ToyModel& model) {
    SearchOptions options{.min_length = 3};
    for (const bool sampling : {false, true}) {
      options.sampling = sampling;
      const auto found = toy_search(model, options, {}, tokens);
      ASSERT_EQ(found.size(), 1U);
      EXPECT_TRUE(found[0].tokens.empty());
    }
  });
}

TEST(DecodingOptions, TokenLogProbabilitiesAreTheModels) {
  with_models([](const ToyModel& model) {
    const SearchOptions options{.max_length = 6,
                                .n_best = 4,
                                .repetition_penalty = 2,
                                .beam_groups = 2,
                                .diversity_strength = 3};
    for (const Hypothesis& each : toy_search(model, options)) {
      ASSERT_EQ(each.token_log_probs.size(), each.tokens.size() + 1);
      std::vector<int32_t> before;
      for (std::size_t i = 0; i < each.tokens.size(); ++i) {
        EXPECT_EQ(each.token_log_probs[i], model.log_prob(before, each.tokens[i]));
        before.push_back(each.tokens[i]);
      }
      EXPECT_EQ(each.token_log_probs.back(), model.log_prob(before, ToyModel::kEos));
    }
  });
}

/// Contract 6: a step offers more where other sentences of it want more.
TEST(Contract06, WhatMoreIsOfferedChangesNothing) {
  SearchTokens tokens = toy_tokens();
  tokens.suppressed_sequences = {{3, 4}};
  SearchOptions small{.beam_size = 2, .max_length = 6, .n_best = 2};
  std::vector<SearchOptions> all(6, small);
  all[1].no_repeat_ngram_size = 2;
  all[2].repetition_penalty = 1.4;
  all[3].beam_groups = 2;
  all[4].sampling = true;
  all[4].sampling_top_k = 3;
  all[5] = all[4];
  all[5].sampling_top_p = 0.7;
  for (const SearchOptions& options : all) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      const ToyModel model(seed, 30);
      for (const auto& required :
           std::vector<std::vector<std::vector<int32_t>>>{{}, {{3}, {7, 8}}}) {
        if (!required.empty() && (options.sampling || options.beam_groups > 1)) continue;
        const auto expected = toy_search(model, options, {.required = required}, tokens);
        const auto found = toy_search(model, options, {.required = required}, tokens, 30);
        ASSERT_EQ(found.size(), expected.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
          EXPECT_EQ(found[i].tokens, expected[i].tokens);
          EXPECT_EQ(found[i].score, expected[i].score);
        }
      }
    }
  }
}

}  // namespace
}  // namespace attend
