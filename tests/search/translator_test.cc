#include "attend/search/translator.h"

#include <thread>

#include <gtest/gtest.h>

#include "attend/data/text.h"
#include "attend/io/model_directory.h"
#include "attend/kernels/gemm.h"
#include "tests/search/small_translator.h"
#include "tests/support/captured_log.h"

namespace attend {
namespace {

TEST(Contract01, AsManyLinesComeOutInOrder) {
  const Translator translator = small_translator(options_of(2, 64));
  Lines lines = made_up_lines(150, 5);
  lines[0] = lines[7] = lines[149] = "";
  lines[8] = "  ";
  lines[50] = "\t \xE3\x80\x80\xC2\xA0";
  TranslationCounts counts;
  const Lines found = texts_of(translator.translate(lines, &counts));
  ASSERT_EQ(found.size(), lines.size());
  EXPECT_EQ(counts.lines, 150);
  EXPECT_EQ(counts.blank, 5);
  for (const std::size_t blank : {0, 7, 8, 50, 149}) EXPECT_EQ(found[blank], "");
  std::size_t empty = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(found[i], translator.translate_line(lines[i]).text());
    EXPECT_EQ(found[i].find('\n'), std::string::npos);
    empty += found[i].empty() ? 1 : 0;
  }
  EXPECT_LT(empty, 50U);
  EXPECT_EQ(stream(translator, joined(lines)), found);
}

TEST(Contract01, NoInputGivesNoOutput) {
  const Translator translator = small_translator(options_of(1));
  EXPECT_TRUE(translator.translate({}).empty());
  EXPECT_EQ(stream(translator, ""), Lines{});
  EXPECT_EQ(stream(translator, "\n\n"), (Lines{"", ""}));
}

TEST(Contract01, ALineEndPutOutByTheModelDoesNotMakeALine) {
  int32_t line_end = 0;
  while (small_tokenizer().piece(line_end) != "<0x0A>") ++line_end;
  auto model = random_model(translator_config(), DType::kFloat32, 3);
  const Tensor& table = model->parameters().find("output_projection").master;
  // All else alike: a token's score is the hidden state's product with its row.
  std::vector<float> values(static_cast<std::size_t>(table.count()), 0.0F);
  const auto row = static_cast<std::size_t>(line_end * table.columns());
  const Tensor& gain = model->parameters().find("decoder.layers.1.feed_forward_norm.bias").master;
  gain.assign(std::vector<float>(static_cast<std::size_t>(gain.count()), 1.0F));
  for (std::size_t i = 0; i < static_cast<std::size_t>(table.columns()); ++i) values[row + i] = 1;
  table.assign(values);
  const Translator translator(model, tokenizer(), tokenizer(), options_of(1));
  const std::string text = translator.translate_line("haus").text();
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_EQ(text, std::string(text.size(), ' '));
  EXPECT_GT(text.size(), 3U);
}

TEST(Contract02, ALineEndsAtALineFeedAlone) {
  const Translator translator = small_translator(options_of(1));
  const Lines lines = {"haus\xE2\x80\xA8garten", "der\xC2\x85 die\f und\v Ein", "two dogs."};
  const std::string bytes = "\xEF\xBB\xBF" + lines[0] + "\r\n" + lines[1] + "\n" + lines[2];
  EXPECT_EQ(stream(translator, bytes), texts_of(translator.translate(lines)));
}

TEST(Contract03, ALongLineIsTranslatedInPieces) {
  const Translator translator = small_translator(options_of(2), 12);
  const Lines sentences = {"der Garten läuft.", "Ein Haus läuft.", "two dogs."};
  const std::string line = sentences[0] + " " + sentences[1] + "  " + sentences[2];
  std::string expected;
  for (const std::string& sentence : sentences) {
    ASSERT_LE(std::ssize(small_tokenizer().encode(sentence)), 11) << "the sentences are to fit";
    expected += (expected.empty() ? "" : " ") + translator.translate_line(sentence).text();
  }
  ASSERT_GT(std::ssize(small_tokenizer().encode(sentences[0] + " " + sentences[1])), 11);
  ASSERT_GT(std::ssize(small_tokenizer().encode(sentences[1] + " " + sentences[2])), 11);

  const CapturedLog log;
  TranslationCounts counts;
  EXPECT_EQ(stream(translator, "haus\n" + line + "\n" + line, &counts),
            (Lines{translator.translate_line("haus").text(), expected, expected}));
  EXPECT_EQ(counts.split, 2);
  EXPECT_EQ(log.count("the input, line 2:"), 1U) << log.text();
  EXPECT_EQ(log.count("the input, line 3:"), 1U) << log.text();
  EXPECT_EQ(log.count("line 1:"), 0U) << log.text();
  EXPECT_EQ(log.count("2 of 3 lines"), 1U) << log.text();
}

TEST(Contract03, AVeryLongLineStopsNothing) {
  const Translator translator = small_translator(options_of(2), 12);
  std::string line;
  for (int i = 0; i < 300; ++i) line += "haus garten ";
  const CapturedLog log;
  const std::vector<Translation> found = translator.translate({"haus", line, "garten"});
  EXPECT_EQ(found[0].text(), translator.translate_line("haus").text());
  EXPECT_EQ(found[2].text(), translator.translate_line("garten").text());
  EXPECT_GT(found[1].text().size(), 500U);
}

TEST(Contract04, WhatIsNoUtf8BecomesTheReplacementCharacter) {
  const Translator translator = small_translator(options_of(1));
  const std::string repaired = translator.translate_line("der \xEF\xBF\xBD Garten").text();
  const CapturedLog log;
  TranslationCounts counts;
  EXPECT_EQ(stream(translator, "haus\nder \xFF Garten\nhaus\n", &counts)[1], repaired);
  EXPECT_EQ(counts.repaired, 1);
  EXPECT_EQ(log.count("the input, line 2:"), 1U) << log.text();
  EXPECT_EQ(log.count("line 1:") + log.count("line 3:"), 0U) << log.text();
  EXPECT_EQ(log.count("1 of 3 lines"), 1U) << log.text();
}

TEST(Contract05, TextGoesThroughTheTokenizerAndNothingElse) {
  const auto model = random_model(translator_config(), DType::kFloat32, 3);
  const Translator translator(model, tokenizer(), tokenizer(), options_of(1));
  const Lines lines = {"a  b", " a", "a ", "\ta\tb", "… ½ ﬁ ²", "😀 中文", "a▁b", "<s> </s>"};
  for (const std::string& line : lines) {
    const auto found = search_all(*model, {small_tokenizer().encode(line)}, options_of(1).search);
    EXPECT_EQ(translator.translate_line(line).text(),
              small_tokenizer().decode(found.front().front().tokens))
        << line;
  }
}

TEST(Contract06, TheAnswerDoesNotDependOnWorkersBatchesOrOrder) {
  Lines lines = made_up_lines(60, 9);
  for (const DType compute : {DType::kFloat32, DType::kBFloat16}) {
    if (compute == DType::kBFloat16 && !has_bfloat16_arithmetic()) continue;
    const Lines expected =
        texts_of(small_translator(options_of(1, 1'000'000), 128, compute).translate(lines));
    const Lines reversed(lines.rbegin(), lines.rend());
    for (const int64_t workers : {1, 3}) {
      for (const int64_t batch_tokens : {1, 100, 2048}) {
        const Translator translator =
            small_translator(options_of(workers, batch_tokens), 128, compute);
        EXPECT_EQ(texts_of(translator.translate(lines)), expected);
        Lines found = texts_of(translator.translate(reversed));
        std::reverse(found.begin(), found.end());
        EXPECT_EQ(found, expected);
        EXPECT_EQ(stream(translator, joined(lines)), expected);
      }
    }
  }
}

TEST(Translator, GreedySearchNeedsNoScores) {
  const Lines lines = made_up_lines(40, 3);
  for (const DType compute : {DType::kFloat32, DType::kBFloat16}) {
    if (compute == DType::kBFloat16 && !has_bfloat16_arithmetic()) continue;
    for (const double repetition_penalty : {1.0, 1.5}) {
      TranslatorOptions options = options_of(1);
      options.search.beam_size = 1;
      options.search.no_repeat_ngram_size = 2;
      options.search.repetition_penalty = repetition_penalty;
      const Lines expected = texts_of(small_translator(options, 128, compute).translate(lines));
      options.search.scores = false;
      EXPECT_EQ(texts_of(small_translator(options, 128, compute).translate(lines)), expected);
    }
  }
}

TEST(Contract06, TheAnswerDoesNotDependOnOtherCallers) {
  const Translator translator = small_translator(options_of(2, 200));
  std::vector<Lines> lines, expected;
  for (uint64_t i = 0; i < 4; ++i) {
    lines.push_back(made_up_lines(40, 20 + i));
    expected.push_back(texts_of(translator.translate(lines.back())));
  }
  std::vector<Lines> found(lines.size());
  std::vector<std::thread> callers;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    callers.emplace_back([&, i] {
      found[i] = i % 2 == 0 ? texts_of(translator.translate(lines[i]))
                            : stream(translator, joined(lines[i]));
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(found, expected);
}

TEST(Contract07, ADirectoryAndItsModelInMemoryGiveTheSame) {
  const TestFolder folder;
  const auto model = random_model(translator_config(), DType::kFloat32, 3);
  NamedTensors weights;
  for (const Parameter& parameter : model->parameters().parameters()) {
    weights.emplace_back(parameter.name, parameter.master);
  }
  save_model_directory(folder.path("model"), model->config(), tokenizer(), tokenizer(), weights);
  TranslatorOptions options = options_of(2);
  options.precision = InferencePrecision::kFloat32;
  const Translator loaded(folder.path("model"), options);
  EXPECT_EQ(loaded.config(), model->config());
  EXPECT_EQ(loaded.workers(), 2);
  const Lines lines = made_up_lines(20, 2);
  EXPECT_EQ(texts_of(loaded.translate(lines)),
            texts_of(small_translator(options).translate(lines)));
}

/// A model directory with a model of this seed.
std::filesystem::path saved_model(const TestFolder& folder, const std::string& name, uint64_t seed,
                                  const std::shared_ptr<const Tokenizer>& its_tokenizer) {
  TransformerConfig config = search_config(its_tokenizer->vocabulary_size());
  const auto model = random_model(config, DType::kFloat32, seed);
  NamedTensors weights;
  for (const Parameter& parameter : model->parameters().parameters()) {
    weights.emplace_back(parameter.name, parameter.master);
  }
  save_model_directory(folder.path(name), config, its_tokenizer, its_tokenizer, weights);
  return folder.path(name);
}

TEST(TranslatorOfSeveral, ChoosesByTheMeanOfTheModels) {
  const TestFolder folder;
  const auto a = saved_model(folder, "a", 3, tokenizer()),
             b = saved_model(folder, "b", 4, tokenizer());
  TranslatorOptions options = options_of(2);
  options.precision = InferencePrecision::kFloat32;
  using Directories = std::vector<std::filesystem::path>;
  const Lines lines = made_up_lines(20, 2);
  const Lines alone = texts_of(Translator(a, options).translate(lines));
  EXPECT_EQ(texts_of(Translator(Directories{a, a}, options).translate(lines)), alone);
  const Lines together = texts_of(Translator(Directories{a, b}, options).translate(lines));
  EXPECT_NE(together, alone);
  EXPECT_NE(together, texts_of(Translator(b, options).translate(lines)));
  EXPECT_EQ(together, texts_of(Translator(Directories{b, a}, options).translate(lines)));
  EXPECT_THROW(Translator(Directories{}, options), UsageError);
}

TEST(TranslatorOfSeveral, RefusesDifferentTokenizersAndNamesBoth) {
  const TestFolder folder;
  const auto a = saved_model(folder, "one", 3, tokenizer());
  const std::vector<std::string> text = made_up_lines(400, 9);
  std::size_t at = 0;
  const auto other = std::make_shared<const Tokenizer>(
      Tokenizer::train({.vocabulary_size = 300}, [&](std::string& line) {
        if (at == text.size()) return false;
        line = text[at++];
        return true;
      }));
  ASSERT_NE(other->fingerprint(), small_tokenizer().fingerprint());
  const auto b = saved_model(folder, "other", 3, other);
  const std::string message = message_of([&] {
    const Translator translator(std::vector<std::filesystem::path>{a, b}, options_of(1));
  });
  expect_contains(message, a.string());
  expect_contains(message, b.string());
  expect_contains(message, "300");
}

TEST(Contract21, ATokenizerOfAnotherVocabularyIsRefusedWithBothNumbers) {
  TransformerConfig config = translator_config();
  const int64_t right = config.target_vocabulary_size;
  ++config.target_vocabulary_size;
  const std::string message = message_of([&] {
    const Translator translator(random_model(config, DType::kFloat32, 1), tokenizer(), tokenizer(),
                                options_of(1));
  });
  expect_contains(message, std::to_string(right));
  expect_contains(message, std::to_string(right + 1));
}

TEST(Translator, GivesTheBestFirst) {
  TranslatorOptions options = options_of(1);
  options.search.n_best = 4;
  const Translator translator = small_translator(options, 12);
  const CapturedLog log;
  const std::string longer = "der Garten läuft. Ein Haus. two dogs.";
  for (const std::string& line : {std::string("der Garten"), longer}) {
    const std::vector<Alternative> found = translator.translate_line(line).alternatives;
    ASSERT_EQ(found.size(), 4U);
    for (std::size_t i = 1; i < found.size(); ++i) EXPECT_GE(found[i - 1].score, found[i].score);
    EXPECT_LT(found[0].score, 0);
    EXPECT_GT(found[0].tokens, 0);
  }
  EXPECT_EQ(translator.translate_line(" ").alternatives.size(), 1U);
}

TEST(Translator, AFailedSearchIsAnErrorForItsCaller) {
  const auto model = random_model(translator_config(), DType::kFloat32, 3);
  const Tensor& table = model->parameters().find("output_projection").master;
  table.assign(std::vector<float>(static_cast<std::size_t>(table.count()), NAN));
  const Translator translator(model, tokenizer(), tokenizer(), options_of(2));
  EXPECT_THROW(translator.translate(made_up_lines(10, 1)), Error);
  EXPECT_THROW(stream(translator, joined(made_up_lines(10, 1))), Error);
}

TEST(Translator, WorkersAreOneACoreOrAsManyAsAsked) {
  EXPECT_EQ(small_translator(options_of(3)).workers(), 3);
  EXPECT_GE(small_translator(options_of(0)).workers(), 1);
  EXPECT_THROW(small_translator(options_of(-1)), UsageError);
  EXPECT_THROW(small_translator(options_of(1'000'000)), UsageError);
}

}  // namespace
}  // namespace attend
