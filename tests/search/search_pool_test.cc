#include "attend/search/search_pool.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include <gtest/gtest.h>

#include "attend/kernels/compute_thread.h"
#include "attend/kernels/gemm.h"
#include "attend/search/search_workers.h"
#include "tests/search/models.h"
#include "tests/support/count_allocations.h"

namespace attend {
namespace {

constexpr int64_t kVocabulary = 40;
using Results = std::vector<std::vector<Hypothesis>>;

SearchTokens plain_tokens() { return {.suppressed = {0}}; }
/// So that every output is as long as it may be.
SearchTokens endless_tokens() { return {.suppressed = {0, 2}}; }

SearchSentence sentence_of(const std::vector<int32_t>& source, std::vector<Hypothesis>& result) {
  return {.request = {.source = source, .constraints = {}},
          .done = [&result](std::vector<Hypothesis> best, const std::exception_ptr& error) {
            EXPECT_FALSE(error);
            result = std::move(best);
          }};
}

void expect_same(const Results& found, const Results& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t s = 0; s < expected.size(); ++s) {
    ASSERT_EQ(found[s].size(), expected[s].size()) << "sentence " << s;
    for (std::size_t i = 0; i < expected[s].size(); ++i) {
      EXPECT_EQ(found[s][i].tokens, expected[s][i].tokens) << "sentence " << s;
      EXPECT_EQ(found[s][i].log_prob, expected[s][i].log_prob) << "sentence " << s;
      EXPECT_EQ(found[s][i].token_log_probs, expected[s][i].token_log_probs) << "sentence " << s;
    }
  }
}

// ------------------------------------------------------------------------------ the pool

TEST(SearchPool, WhatIsDoneLeavesAndWhatWaitsEnters) {
  const auto model = random_model(search_config(kVocabulary), DType::kFloat32, 3);
  const std::vector<const Transformer*> models = {model.get()};
  const SearchTokens tokens = endless_tokens();
  // Room for four of 7 tokens; outputs are as long as their sources.
  const SearchOptions options{.beam_size = 1, .max_extra_length = 0, .batch_tokens = 8};
  prepare_compute_thread();
  MemoryPool memory;
  SearchPool pool(models, memory, tokens, options);
  std::vector<std::size_t> left;
  const auto sentence = [&](std::size_t length) -> SearchSentence {
    return {
        .request = {.source = std::vector<int32_t>(length, 5), .constraints = {}},
        .done = [&left, length](const std::vector<Hypothesis>& best, const std::exception_ptr&) {
          EXPECT_EQ(best.at(0).tokens.size(), length);
          left.push_back(length);
        }};
  };
  EXPECT_TRUE(pool.empty());
  EXPECT_EQ(pool.room(), 32);
  std::vector<SearchSentence> first;
  for (const std::size_t length : {7, 2, 1, 6}) first.push_back(sentence(length));
  pool.add(std::move(first));
  EXPECT_EQ(pool.room(), 0);
  EXPECT_EQ(pool.cost(), 32);
  pool.step();
  pool.step();
  EXPECT_EQ(left, (std::vector<std::size_t>{1}));
  EXPECT_EQ(pool.room(), 8);
  std::vector<SearchSentence> second;
  second.push_back(sentence(4));
  pool.add(std::move(second));
  EXPECT_EQ(pool.room(), 0);
  for (int step = 0; step < 5; ++step) pool.step();
  EXPECT_EQ(left, (std::vector<std::size_t>{1, 2, 6, 4}));
  pool.step();
  EXPECT_TRUE(pool.empty());
  EXPECT_EQ(left.back(), 7U);
  EXPECT_EQ(pool.cost(), 0);
  pool.step();  // nothing to do
}

/// Those far behind wait while there are many, and what comes out is the same.
TEST(SearchPool, ManyHypothesesTakeTwoTurns) {
  const auto model = random_model(search_config(kVocabulary), DType::kFloat32, 3, 8.0F);
  const std::vector<const Transformer*> models = {model.get()};
  const SearchTokens tokens = endless_tokens();
  const SearchOptions options{.beam_size = 4, .max_extra_length = 0, .batch_tokens = 1000};
  prepare_compute_thread();
  MemoryPool memory;
  constexpr std::size_t kLength = 9;
  const auto search = [&](std::size_t first, std::size_t count,
                          std::span<std::vector<Hypothesis>> into) {
    SearchPool pool(models, memory, tokens, options);
    std::vector<SearchSentence> sentences;
    for (std::size_t i = 0; i < count; ++i) {
      const std::vector<int32_t> source(kLength, static_cast<int32_t>(3 + first + i));
      sentences.push_back(sentence_of(source, into[i]));
    }
    pool.add(std::move(sentences));
    std::size_t turns = 0;
    for (; !pool.empty(); ++turns) pool.step();
    return turns;
  };
  Results together(30), alone(30);
  EXPECT_GT(search(0, together.size(), together), kLength + 1);
  for (std::size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(search(i, 1, std::span(alone).subspan(i)), kLength + 1);
  }
  expect_same(together, alone);
}

TEST(SearchPool, SentencesThatFailLeaveTheOthersAlone) {
  const auto model = random_model(search_config(kVocabulary), DType::kFloat32, 3);
  const Tensor& table = model->parameters().find("encoder.embedding").master;
  std::vector<float> values = table.to_vector();
  std::fill_n(values.begin() + 9 * 32, 32, NAN);  // whoever has token 9
  table.assign(values);
  const std::vector<const Transformer*> models = {model.get()};
  const SearchTokens tokens = plain_tokens();
  prepare_compute_thread();
  MemoryPool memory;
  SearchPool pool(models, memory, tokens, {});
  std::vector<int> failed(3, -1);
  std::vector<SearchSentence> sentences;
  for (std::size_t i = 0; i < 3; ++i) {
    sentences.push_back({.request = {.source = {4, i == 1 ? 9 : 5, 6}, .constraints = {}},
                         .done = [&failed, i](const std::vector<Hypothesis>& best,
                                              const std::exception_ptr& error) {
                           failed[i] = error ? 1 : 0;
                           EXPECT_EQ(best.empty(), error != nullptr);
                         }});
  }
  pool.add(std::move(sentences));
  while (!pool.empty()) pool.step();
  EXPECT_EQ(failed, (std::vector<int>{0, 1, 0}));
}

TEST(SearchPool, AfterAnErrorItGoesOn) {
  const auto model = random_model(search_config(kVocabulary), DType::kFloat32, 3);
  const std::vector<const Transformer*> models = {model.get()};
  const SearchTokens tokens = plain_tokens();
  prepare_compute_thread();
  MemoryPool memory;
  SearchPool pool(models, memory, tokens, {});
  int failed = 0;
  const auto count = [&](const std::vector<Hypothesis>&, const std::exception_ptr& error) {
    failed += error ? 1 : 0;
  };
  std::vector<SearchSentence> sentences(
      2, {.request = {.source = {4, 5}, .constraints = {}}, .done = count});
  sentences[1].request.source[0] = kVocabulary;  // no such token
  pool.add(sentences);
  EXPECT_EQ(failed, 2);
  EXPECT_TRUE(pool.empty());
  std::vector<Hypothesis> result;
  std::vector<SearchSentence> more;
  more.push_back(sentence_of({4, 5}, result));
  pool.add(std::move(more));
  while (!pool.empty()) pool.step();
  expect_same({result}, search_all(*model, {{4, 5}}, {}));
}

TEST(SearchPool, MemoryStaysWithinTheEstimate) {
  TransformerConfig config = search_config(kVocabulary);
  config.max_length = 100;
  const auto model = random_model(config, DType::kFloat32, 3, 0.5F);
  const std::vector<const Transformer*> models = {model.get()};
  const SearchTokens tokens = endless_tokens();
  prepare_compute_thread();
  for (const SearchOptions& options :
       {SearchOptions{.max_extra_length = 30, .batch_tokens = 150},
        SearchOptions{.beam_size = 1, .max_extra_length = 10, .batch_tokens = 100},
        SearchOptions{.beam_size = 20, .max_extra_length = 80, .batch_tokens = 1}}) {
    const int64_t estimate = search_memory(config, DType::kFloat32, options);
    int64_t most = 0;
    for (const auto& [shortest, longest] :
         {std::pair<uint64_t, uint64_t>(7, 7), {99, 99}, {0, 99}}) {
      MemoryPool memory;
      std::vector<SearchRequest> requests;
      for (const auto& source : random_sources(20, shortest, longest, kVocabulary, 1)) {
        requests.push_back({.source = source, .constraints = {}});
      }
      beam_search(models, memory, requests, tokens, options);
      EXPECT_LE(memory.peak_bytes(), estimate) << options.beam_size << " " << longest;
      most = std::max(most, memory.peak_bytes());
    }
    EXPECT_GE(12 * most, estimate) << options.beam_size;
  }
}

/// Calls of operator new in a step of so many sentences: the median of some in the middle.
int64_t allocations_of_a_step(int64_t sentences) {
  const auto model = random_model(search_config(kVocabulary), DType::kFloat32, 3, 0.5F);
  const std::vector<const Transformer*> models = {model.get()};
  const SearchTokens tokens = endless_tokens();
  prepare_compute_thread();
  MemoryPool memory;
  SearchPool pool(models, memory, tokens, {.batch_tokens = 100'000});
  Results results(static_cast<std::size_t>(sentences));
  std::vector<SearchSentence> entering;
  for (std::size_t i = 0; i < results.size(); ++i) {
    entering.push_back(sentence_of({4, 5, 6, static_cast<int32_t>(3 + i % 30)}, results[i]));
  }
  pool.add(std::move(entering));
  std::vector<int64_t> counts;
  for (int step = 0; step < 50; ++step) {
    const int64_t before = testing::allocations;
    pool.step();
    if (step >= 20) counts.push_back(testing::allocations - before);
  }
  while (!pool.empty()) pool.step();
  std::sort(counts.begin(), counts.end());
  return counts[counts.size() / 2];
}

TEST(SearchPool, AStepAllocatesNoOftenerForManyRowsThanForFew) {
#ifdef ATTEND_SANITIZE
  GTEST_SKIP() << "sanitizers have an operator new of their own";
#endif
  constexpr int64_t kSlack = 20;  // of the matrix library, which has several ways
  const int64_t few = allocations_of_a_step(2), many = allocations_of_a_step(32);
  RecordProperty("allocations", static_cast<int>(many));
  EXPECT_LE(many, few + kSlack);
  EXPECT_LE(few, 700);
}

// ------------------------------------------------------------------------------ contract 6

TEST(Contract06, TheAnswerDoesNotDependOnThePoolOrTheWorkers) {
  const TokenSequences sources = random_sources(70, 0, 20, kVocabulary, 11);
  std::vector<std::size_t> order(sources.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return sources[a].size() < sources[b].size();
  });
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    if (dtype == DType::kBFloat16 && !has_bfloat16_arithmetic()) continue;
    const auto model = random_model(search_config(kVocabulary), dtype, 2);
    Results expected;
    for (const auto& source : sources) {
      expected.push_back(search_all(*model, {source}, {.n_best = 4}).front());
    }
    for (const int64_t sentences : {1, 7, 64}) {
      for (const int64_t workers : {1, 2, 4}) {
        for (const bool sorted : {false, true}) {
          Results found(sources.size());
          std::mutex mutex;
          std::condition_variable changed;
          std::size_t left = sources.size();
          {
            SearchWorkers pool({model}, plain_tokens(),
                               {.n_best = 4, .batch_tokens = 10 * sentences}, workers);
            for (std::size_t i = 0; i < sources.size(); ++i) {
              const std::size_t at = sorted ? order[i] : i;
              std::vector<SearchSentence> one;
              one.push_back({.request = {.source = sources[at], .constraints = {}},
                             .done = [&, at](std::vector<Hypothesis> best, std::exception_ptr) {
                               const std::lock_guard lock(mutex);
                               found[at] = std::move(best);
                               if (--left == 0) changed.notify_all();
                             }});
              pool.submit(std::move(one));
            }
            std::unique_lock lock(mutex);
            changed.wait(lock, [&] { return left == 0; });
          }
          expect_same(found, expected);
        }
      }
    }
  }
}

// ------------------------------------------------------------------------------ ensembles

/// log of the mean of probabilities, token by token.
double ensemble_log_prob(const std::vector<const Transformer*>& models,
                         const std::vector<int32_t>& source, std::vector<int32_t> output) {
  std::vector<double> means(output.size() + 1, 0.0);
  for (const Transformer* model : models) {
    const auto rows = decode_in_full(*model, source, output);
    for (std::size_t i = 0; i < means.size(); ++i) {
      const auto token = static_cast<std::size_t>(i < output.size() ? output[i] : 2);
      means[i] += std::exp(rows[i][token]) / static_cast<double>(models.size());
    }
  }
  double sum = 0;
  for (const double mean : means) sum += std::log(mean);
  return sum;
}

TEST(Ensemble, OfAModelWithItselfIsTheModel) {
  for (const TransformerConfig& config : search_configs(kVocabulary)) {
    const auto model = random_model(config, DType::kFloat32, 5);
    const TokenSequences sources = random_sources(20, 1, 15, kVocabulary, 4);
    const Results alone = search_all(*model, sources, {.n_best = 2});
    const Results twice = search_all({model.get(), model.get()}, sources, {.n_best = 2});
    for (std::size_t s = 0; s < sources.size(); ++s) {
      ASSERT_EQ(twice[s].size(), alone[s].size());
      for (std::size_t i = 0; i < alone[s].size(); ++i) {
        EXPECT_EQ(twice[s][i].tokens, alone[s][i].tokens) << "sentence " << s;
        EXPECT_NEAR(twice[s][i].log_prob, alone[s][i].log_prob, 1e-4);
      }
    }
  }
}

TEST(Ensemble, FindsWhatTheMeanOfProbabilitiesMakesBest) {
  constexpr int64_t kFew = 6;
  const auto first = random_model(search_config(kFew), DType::kFloat32, 1, 1.5F);
  TransformerConfig other = search_config(kFew);
  other.decoder_layers = 1;
  other.d_model = 16;
  other.norm = NormPlacement::kPre;
  const auto second = random_model(other, DType::kFloat32, 2, 2.5F);
  const std::vector<const Transformer*> models = {first.get(), second.get()};
  TokenSequences outputs = {{}};
  for (std::size_t i = 0; outputs[i].size() < 3; ++i) {
    for (int32_t token = 3; token < kFew; ++token) {
      outputs.push_back(outputs[i]);
      outputs.back().push_back(token);
    }
    if (i + 1 == outputs.size()) break;
  }
  const TokenSequences sources = random_sources(3, 2, 2, kFew, 7);
  const Results found =
      search_all(models, sources, {.beam_size = 64, .max_extra_length = 1, .n_best = 40});
  for (std::size_t s = 0; s < sources.size(); ++s) {
    std::vector<std::pair<double, std::vector<int32_t>>> ranked;
    for (const std::vector<int32_t>& output : outputs) {
      const double log_prob = ensemble_log_prob(models, sources[s], output);
      ranked.emplace_back(length_penalized(log_prob, std::ssize(output) + 1, 0.6), output);
    }
    std::sort(ranked.rbegin(), ranked.rend());
    ASSERT_EQ(found[s].size(), 40U);
    ASSERT_EQ(ranked.size(), 40U);
    for (std::size_t i = 0; i < ranked.size(); ++i) {
      EXPECT_NEAR(found[s][i].score, ranked[i].first, 1e-4) << "rank " << i;
    }
    EXPECT_EQ(found[s][0].tokens, ranked[0].second);
  }
}

TEST(Ensemble, AnswersDoNotDependOnTheBatch) {
  const auto first = random_model(search_config(kVocabulary), DType::kFloat32, 1);
  const auto second = random_model(search_configs(kVocabulary)[1], DType::kFloat32, 2);
  const std::vector<const Transformer*> models = {first.get(), second.get()};
  const TokenSequences sources = random_sources(40, 0, 20, kVocabulary, 11);
  Results alone;
  for (const auto& source : sources) {
    alone.push_back(search_all(models, {source}, {.n_best = 2}).front());
  }
  expect_same(search_all(models, sources, {.n_best = 2, .batch_tokens = 90}), alone);
  expect_same(search_all(models, sources, {.n_best = 2}), alone);
}

}  // namespace
}  // namespace attend
