#include "attend/search/shortlist.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "attend/data/corpus.h"
#include "attend/io/model_directory.h"
#include "attend/kernels/compute_thread.h"
#include "attend/kernels/gemm.h"
#include "attend/search/translator.h"
#include "tests/data/test_files.h"
#include "tests/search/models.h"

namespace attend {
namespace {

constexpr int64_t kVocabulary = 60;
constexpr int32_t kEos = 2;

std::shared_ptr<const Shortlist> whole_vocabulary() {
  std::vector<int32_t> all(kVocabulary);
  std::iota(all.begin(), all.end(), 0);
  return std::make_shared<Shortlist>(std::vector<std::vector<int32_t>>(kVocabulary), all,
                                     kVocabulary);
}

/// A few tokens for each source token, and two for all.
std::shared_ptr<const Shortlist> random_shortlist() {
  RandomGenerator random(5);
  std::vector<std::vector<int32_t>> candidates(kVocabulary);
  for (std::vector<int32_t>& each : candidates) {
    each.resize(random.uniform_index(6));
    for (int32_t& token : each) token = static_cast<int32_t>(random.uniform_index(kVocabulary));
  }
  return std::make_shared<Shortlist>(candidates, std::vector<int32_t>{7, 8}, kVocabulary);
}

SearchTokens tokens_with(std::shared_ptr<const Shortlist> shortlist) {
  return {.suppressed = {0}, .suppressed_sequences = {}, .shortlist = std::move(shortlist)};
}

/// As it is loaded: packed, with the rows that a shortlist needs.
std::shared_ptr<Transformer> running_model(Transformer& original, DType weights) {
  auto model = std::make_shared<Transformer>(original.config(), weights);
  model->keep_output_rows();
  model->parameters().load(
      [&](const Parameter& parameter) {
        return StoredWeight{original.parameters().find(parameter.name).master, {}};
      },
      weights);
  return model;
}

struct NamedModel {
  std::string name;
  std::shared_ptr<Transformer> model;
};

/// Tied and untied, in every precision of this machine; as trained, and as loaded.
std::vector<NamedModel> all_models() {
  std::vector<NamedModel> models;
  for (const bool tied : {false, true}) {
    TransformerConfig config = search_config(kVocabulary);
    config.tied_embeddings = tied ? TiedEmbeddings::kAll : TiedEmbeddings::kNone;
    const auto original = random_model(config, DType::kFloat32, 3);
    models.push_back({"trained", original});
    models.push_back({"float32", running_model(*original, DType::kFloat32)});
    if (has_bfloat16_arithmetic()) {
      models.push_back({"bfloat16", running_model(*original, DType::kBFloat16)});
    }
    if (has_int8_arithmetic()) {
      models.push_back({"int8", running_model(*original, DType::kInt8)});
    }
  }
  return models;
}

void expect_same(const std::vector<std::vector<Hypothesis>>& a,
                 const std::vector<std::vector<Hypothesis>>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].size(), b[i].size());
    for (std::size_t j = 0; j < a[i].size(); ++j) {
      EXPECT_EQ(a[i][j].tokens, b[i][j].tokens);
      EXPECT_EQ(a[i][j].token_log_probs, b[i][j].token_log_probs);
      EXPECT_EQ(a[i][j].score, b[i][j].score);
    }
  }
}

std::vector<SearchOptions> kinds_of_search() {
  std::vector<SearchOptions> kinds(5);
  kinds[0].beam_size = 1;
  kinds[1].n_best = 3;
  kinds[2] = {.n_best = 2, .sampling = true, .seed = 4};
  kinds[3] = {.n_best = 2, .sampling = true, .sampling_top_k = 5, .seed = 4};
  kinds[4] = {.beam_size = 70, .n_best = 5};
  for (SearchOptions& each : kinds) each.max_extra_length = 4;
  return kinds;
}

// ------------------------------------------------------------------------------ searching

TEST(Shortlist, OfTheWholeVocabularyChangesNothing) {
  const TokenSequences sources = random_sources(12, 1, 9, kVocabulary, 1);
  for (const auto& [name, model] : all_models()) {
    SCOPED_TRACE(name);
    if (name == "bfloat16") continue;  // its packed weights are rounded, its rows are not
    for (const SearchOptions& options : kinds_of_search()) {
      const auto with = search_all(*model, sources, options, tokens_with(whole_vocabulary()));
      const auto without = search_all(*model, sources, options);
      if (name == "int8") {
        expect_same(with, without);
        continue;
      }
      for (std::size_t i = 0; i < sources.size(); ++i) {
        ASSERT_EQ(with[i].size(), without[i].size());
        EXPECT_EQ(with[i][0].tokens, without[i][0].tokens);
        EXPECT_NEAR(with[i][0].log_prob, without[i][0].log_prob, 1e-4);
      }
    }
  }
}

TEST(Shortlist, ProbabilitiesAreThoseAmongItsTokens) {
  const TokenSequences sources = random_sources(8, 1, 9, kVocabulary, 2);
  const auto shortlist = random_shortlist();
  const auto model = random_model(search_config(kVocabulary), DType::kFloat32, 3);
  const auto found =
      search_all(*model, sources, {.max_extra_length = 4, .n_best = 2}, tokens_with(shortlist));
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::vector<int32_t> listed =
        shortlist->tokens_for({.source = sources[i], .constraints = {}}, kEos);
    for (const Hypothesis& each : found[i]) {
      const auto rows = decode_in_full(*model, sources[i], each.tokens);
      double log_prob = 0;
      for (std::size_t step = 0; step <= each.tokens.size(); ++step) {
        const int32_t token = step < each.tokens.size() ? each.tokens[step] : kEos;
        ASSERT_TRUE(std::ranges::binary_search(listed, token)) << token;
        double sum = 0;
        for (const int32_t other : listed) {
          sum += std::exp(rows[step][static_cast<std::size_t>(other)]);
        }
        log_prob += rows[step][static_cast<std::size_t>(token)] - std::log(sum);
      }
      EXPECT_NEAR(each.log_prob, log_prob, 1e-3);
    }
  }
}

TEST(Contract06, AShortlistIsTheSentencesOwn) {
  const TokenSequences sources = random_sources(20, 1, 12, kVocabulary, 3);
  const SearchTokens tokens = tokens_with(random_shortlist());
  for (const auto& [name, model] : all_models()) {
    SCOPED_TRACE(name);
    for (const SearchOptions& options : kinds_of_search()) {
      const auto together = search_all(*model, sources, options, tokens);
      for (std::size_t i = 0; i < sources.size(); ++i) {
        expect_same({together[i]}, search_all(*model, {sources[i]}, options, tokens));
      }
    }
  }
}

TEST(Shortlist, HoldsWhatAnOutputMustHold) {
  const auto model = random_model(search_config(kVocabulary), DType::kFloat32, 3);
  const auto shortlist = std::make_shared<const Shortlist>(
      std::vector<std::vector<int32_t>>(kVocabulary), std::vector<int32_t>{7, 8, 9}, kVocabulary);
  const SearchTokens tokens = tokens_with(shortlist);
  const SearchRequest request{.source = {20, 21},
                              .constraints = {.prefix = {30, 31}, .required = {{40}, {41, 42}}}};
  EXPECT_EQ(shortlist->tokens_for(request, kEos),
            (std::vector<int32_t>{2, 7, 8, 9, 30, 31, 40, 41, 42}));
  prepare_compute_thread();
  MemoryPool memory;
  const std::vector<const Transformer*> models = {model.get()};
  for (const int64_t beam_size : {1, 4, 70}) {
    const SearchOptions options{.beam_size = beam_size, .max_extra_length = 8};
    const Hypothesis found = beam_search(models, memory, {request}, tokens, options)[0][0];
    EXPECT_TRUE(std::isfinite(found.log_prob));
    ASSERT_GE(found.tokens.size(), 5U);
    EXPECT_EQ((std::vector<int32_t>{found.tokens[0], found.tokens[1]}), request.constraints.prefix);
    EXPECT_NE(std::ranges::find(found.tokens, 40), found.tokens.end());
  }
}

TEST(Shortlist, NothingImpossibleComesOut) {
  // A beam wider than the list.
  const auto model = random_model(search_config(kVocabulary), DType::kFloat32, 3);
  const auto shortlist = std::make_shared<const Shortlist>(
      std::vector<std::vector<int32_t>>(kVocabulary), std::vector<int32_t>{7, 8}, kVocabulary);
  for (const int64_t beam_size : {6, 70}) {
    const SearchOptions options{.beam_size = beam_size, .max_length = 2, .n_best = 6};
    const auto found = search_all(*model, {{20, 21, 22}}, options, tokens_with(shortlist));
    EXPECT_EQ(found[0].size(), 6U);
    for (const Hypothesis& each : found[0]) {
      EXPECT_TRUE(std::isfinite(each.log_prob));
      for (const int32_t token : each.tokens) EXPECT_TRUE(token == 7 || token == 8) << token;
    }
  }
}

TEST(Shortlist, ServesAnEnsemble) {
  const TokenSequences sources = random_sources(6, 1, 9, kVocabulary, 4);
  const auto a = random_model(search_config(kVocabulary), DType::kFloat32, 3);
  const auto b = random_model(search_config(kVocabulary), DType::kFloat32, 4);
  const std::vector<const Transformer*> models = {a.get(), b.get()};
  const SearchOptions options{.max_extra_length = 4};
  const auto with = search_all(models, sources, options, tokens_with(whole_vocabulary()));
  const auto without = search_all(models, sources, options);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    EXPECT_EQ(with[i][0].tokens, without[i][0].tokens);
    EXPECT_NEAR(with[i][0].log_prob, without[i][0].log_prob, 1e-4);
  }
}

TEST(Shortlist, AModelWithoutTheRowsSaysSo) {
  const auto original = random_model(search_config(kVocabulary), DType::kFloat32, 3);
  Transformer model(original->config(), DType::kFloat32);
  model.parameters().load(
      [&](const Parameter& parameter) {
        return StoredWeight{original->parameters().find(parameter.name).master, {}};
      },
      DType::kFloat32);
  expect_contains(message_of([&] {
                    search_all(model, {{20}}, {.beam_size = 1}, tokens_with(whole_vocabulary()));
                  }),
                  "shortlist");
}

// ------------------------------------------------------------------------------ files

class ShortlistFile : public testing::Test {
 protected:
  const Tokenizer& tokenizer() const { return small_tokenizer(); }
  int64_t vocabulary() const { return tokenizer().vocabulary_size(); }
  std::map<std::string, std::string> metadata() const {
    return {{kSourceTokenizerKey, tokenizer().fingerprint()},
            {kTargetTokenizerKey, tokenizer().fingerprint()}};
  }
  std::vector<int32_t> offsets() const {
    std::vector<int32_t> rising(static_cast<std::size_t>(vocabulary()) + 1, 2);
    rising.front() = 0;
    return rising;
  }
  Shortlist load() const { return Shortlist::load(path_, tokenizer(), tokenizer()); }
  std::string complaint_about(const NamedIntegers& lists) const {
    write_safetensors(path_, {}, metadata(), lists);
    return message_of([&] { load(); });
  }

  TestFolder folder_;
  std::string path_ = folder_.path("shortlist.safetensors");
};

TEST_F(ShortlistFile, ComesBack) {
  std::vector<std::vector<int32_t>> candidates(static_cast<std::size_t>(vocabulary()));
  candidates[3] = {5, 4, 300};
  candidates.back() = {1};
  const Shortlist saved(candidates, {9, 8}, vocabulary());
  saved.save(path_, tokenizer(), tokenizer());
  const Shortlist loaded = load();
  for (int32_t token = 0; token < vocabulary(); ++token) {
    EXPECT_TRUE(
        std::ranges::equal(loaded.candidates(token), candidates[static_cast<std::size_t>(token)]));
  }
  EXPECT_TRUE(std::ranges::equal(loaded.frequent(), std::vector<int32_t>{9, 8}));
  const SearchRequest request{.source = {3, 0, 3}, .constraints = {}};
  EXPECT_EQ(loaded.tokens_for(request, kEos), (std::vector<int32_t>{2, 4, 5, 8, 9, 300}));
}

TEST_F(ShortlistFile, AnEmptyOneIsOne) {
  Shortlist(std::vector<std::vector<int32_t>>(static_cast<std::size_t>(vocabulary())), {},
            vocabulary())
      .save(path_, tokenizer(), tokenizer());
  EXPECT_EQ(load().tokens_for({.source = {3}, .constraints = {}}, kEos), std::vector<int32_t>{2});
}

TEST_F(ShortlistFile, OfOtherTokenizersIsRefused) {
  const std::vector<std::string> lines = made_up_lines(300, 9);
  const Tokenizer other = Tokenizer::train({.vocabulary_size = 330}, lines_of(lines));
  const Shortlist shortlist({}, {}, vocabulary());
  shortlist.save(path_, other, tokenizer());
  expect_contains(message_of([&] { load(); }), "source_tokenizer");
  shortlist.save(path_, tokenizer(), other);
  expect_contains(message_of([&] { load(); }), other.fingerprint());
  write_safetensors(path_, {{"x", Tensor::from({1}, {1})}});
  expect_contains(message_of([&] { load(); }), "is no shortlist");
}

TEST_F(ShortlistFile, WhatDoesNotFitIsNamed) {
  expect_contains(complaint_about({{"offsets", offsets()}, {"frequent", {1}}}), "candidates");
  expect_contains(complaint_about({{"offsets", {0, 2}}, {"candidates", {1, 2}}, {"frequent", {1}}}),
                  "offsets has 2 numbers");
  for (const int32_t id : {-1, static_cast<int32_t>(vocabulary())}) {
    expect_contains(
        complaint_about({{"offsets", offsets()}, {"candidates", {1, id}}, {"frequent", {1}}}),
        fmt::format("tensor candidates: found the token {}", id));
    expect_contains(
        complaint_about({{"offsets", offsets()}, {"candidates", {1, 2}}, {"frequent", {id}}}),
        fmt::format("tensor frequent: found the token {}", id));
  }
  for (const int32_t bad : {-1, 3, 2'000'000'000}) {
    std::vector<int32_t> rising = offsets();
    rising[rising.size() / 2] = bad;
    expect_contains(
        complaint_about({{"offsets", rising}, {"candidates", {1, 2}}, {"frequent", {1}}}),
        "does not rise");
  }
  expect_contains(complaint_about({{"offsets", offsets()}, {"candidates", {1}}, {"frequent", {1}}}),
                  "does not rise");
  write_safetensors(path_, {{"offsets", Tensor::from({0, 2}, {2})}}, metadata());
  expect_contains(message_of([&] { load(); }), "expected I32");
}

TEST_F(ShortlistFile, DamagedOnesAreRefused) {
  Shortlist(std::vector<std::vector<int32_t>>(static_cast<std::size_t>(vocabulary()), {3, 4}),
            {5, 6}, vocabulary())
      .save(path_, tokenizer(), tokenizer());
  const std::string whole = get(path_);
  RandomGenerator random(1);
  for (int i = 0; i < 300; ++i) {
    std::string bytes = whole;
    if (i % 3 == 0) {
      bytes.resize(random.uniform_index(bytes.size()));
    } else {
      bytes[random.uniform_index(bytes.size())] ^= static_cast<char>(1 + random.uniform_index(255));
    }
    folder_.write("shortlist.safetensors", bytes);
    try {
      const Shortlist loaded = load();  // what was hit is no more than a name or a space
      for (int32_t token = 0; token < vocabulary(); ++token) {
        for (const int32_t id : loaded.candidates(token)) ASSERT_LT(id, vocabulary());
      }
    } catch (const Error&) {
    }
  }
}

// ------------------------------------------------------------------------------ learning

TEST_F(ShortlistFile, IsLearnedFromACorpusAndUsed) {
  // The target is the source's words in capitals and the other way round.
  const std::vector<std::string> words = {"haus", "garten", "der", "die", "two", "play", "with"};
  RandomGenerator random(3);
  std::string source, target;
  for (int i = 0; i < 400; ++i) {
    for (uint64_t n = 1 + random.uniform_index(5); n > 0; --n) {
      const std::size_t word = random.uniform_index(words.size());
      source += words[word] + (n > 1 ? " " : "\n");
      target += words[(word + 1) % words.size()] + (n > 1 ? " " : "\n");
    }
  }
  CorpusOptions options;
  options.corpora = {
      {.source = folder_.write("a.gz", gzip(source)), .target = folder_.write("b", target)}};
  const ParallelCorpus corpus = ParallelCorpus::load(options, tokenizer(), tokenizer());
  const ShortlistOptions small{.candidates = 8, .frequent = 5, .iterations = 4};
  const Shortlist learned = Shortlist::learn(corpus, tokenizer(), tokenizer(), small);
  EXPECT_EQ(learned.frequent().size(), 5U);
  EXPECT_EQ(learned.source_vocabulary(), vocabulary());
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::vector<int32_t> listed =
        learned.tokens_for({.source = tokenizer().encode(words[i]), .constraints = {}}, kEos);
    for (const int32_t token : tokenizer().encode(words[(i + 1) % words.size()])) {
      EXPECT_TRUE(std::ranges::binary_search(listed, token)) << words[i];
    }
  }
  const int32_t unseen = tokenizer().encode("Q").back();
  EXPECT_TRUE(std::ranges::equal(learned.candidates(unseen), std::vector<int32_t>{unseen}))
      << "is copied";

  learned.save(path_, tokenizer(), tokenizer());
  const Shortlist loaded = load();
  TransformerConfig config = search_config(vocabulary());
  const auto shared = std::shared_ptr<const Tokenizer>(std::shared_ptr<void>(), &tokenizer());
  const Translator translator(
      random_model(config, DType::kFloat32, 3), shared, shared,
      {.search = {.max_extra_length = 5}, .workers = 2, .shortlist = path_});
  for (const std::string& line : made_up_lines(20, 4)) {
    const std::vector<int32_t> listed =
        loaded.tokens_for({.source = tokenizer().encode(line), .constraints = {}}, kEos);
    std::string spelled;  // all that the list can spell
    for (const int32_t token : listed) spelled += tokenizer().decode({&token, 1});
    const Translation translation = translator.translate_line(line);
    for (const char each : translation.text()) {
      EXPECT_TRUE(each < 0 || each == ' ' || spelled.find(each) != std::string::npos) << each;
    }
  }
}

}  // namespace
}  // namespace attend
