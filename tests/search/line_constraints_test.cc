#include "attend/search/line_constraints.h"

#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "attend/data/text.h"
#include "attend/search/translator.h"
#include "tests/data/test_files.h"
#include "tests/io/support.h"
#include "tests/search/models.h"

namespace attend {
namespace {

using Lines = std::vector<std::string>;
using Constraints = std::vector<LineConstraints>;

std::shared_ptr<const Tokenizer> tokenizer() {
  return {std::shared_ptr<const Tokenizer>(), &small_tokenizer()};
}

Translator make_translator(const SearchOptions& search, int64_t workers = 2,
                           const Lines& suppress = {}) {
  TransformerConfig config = search_config(small_tokenizer().vocabulary_size());
  return {random_model(config, DType::kFloat32, 3),
          tokenizer(),
          tokenizer(),
          {.search = search, .suppress = suppress, .workers = workers}};
}

Lines texts_of(const std::vector<Translation>& translations) {
  Lines texts;
  for (const Translation& translation : translations) {
    for (const Alternative& each : translation.alternatives) texts.push_back(each.text);
  }
  return texts;
}

const Lines kLines = {"haus", "der Garten", "two dogs.", "", "Ein Haus läuft."};

/// Constraints of different kinds for kLines.
Constraints mixed_constraints() {
  return {{.prefix = "der Garten", .required = {}},
          {.prefix = "", .required = {"two dogs", "Haus"}},
          {.prefix = "Ein", .required = {"läuft"}},
          {.prefix = "not for a blank line", .required = {}},
          {}};
}

TEST(LineConstraints, PrefixesAndRequiredPhrasesAreInTheText) {
  const Translator translator =
      make_translator({.beam_size = 4, .max_extra_length = 5, .n_best = 4});
  const auto found = translator.translate(kLines, mixed_constraints());
  ASSERT_EQ(found.size(), kLines.size());
  for (const Alternative& each : found[0].alternatives) {
    EXPECT_TRUE(each.text.starts_with("der Garten")) << each.text;
  }
  for (const Alternative& each : found[1].alternatives) {
    EXPECT_NE(each.text.find("two dogs"), std::string::npos) << each.text;
    EXPECT_NE(each.text.find("Haus"), std::string::npos) << each.text;
  }
  for (const Alternative& each : found[2].alternatives) {
    EXPECT_TRUE(each.text.starts_with("Ein")) << each.text;
    EXPECT_NE(each.text.find("läuft"), std::string::npos) << each.text;
  }
  EXPECT_EQ(found[3].text(), "");
  EXPECT_EQ(found[4].text(), translator.translate_line(kLines[4]).text());
}

TEST(LineConstraints, OfALineInPiecesTheyAreTheFirsts) {
  TransformerConfig config = search_config(small_tokenizer().vocabulary_size());
  config.max_length = 12;
  const Translator translator(random_model(config, DType::kFloat32, 3), tokenizer(), tokenizer(),
                              {.search = {.max_extra_length = 5}, .workers = 1});
  const std::string line = "der Garten läuft. Ein Haus läuft.";
  const auto found = translator.translate({line}, {{.prefix = "two", .required = {}}});
  EXPECT_EQ(
      found[0].text(),
      translator.translate({"der Garten läuft."}, {{.prefix = "two", .required = {}}})[0].text() +
          " " + translator.translate_line("Ein Haus läuft.").text());
}

TEST(LineConstraints, WhatCannotBeMetIsAnErrorThatNamesTheLine) {
  const Translator translator = make_translator({});
  const auto complaint = [&](const LineConstraints& second) {
    return message_of([&] { translator.translate({"haus", "haus"}, {{}, second}); });
  };
  std::string endless;
  for (int i = 0; i < 200; ++i) endless += "haus ";
  expect_contains(complaint({.prefix = endless, .required = {}}), "line 2: a prefix and required");
  expect_contains(complaint({.prefix = "\xFF", .required = {}}), "line 2: ");
  EXPECT_THROW(translator.translate({"haus", "haus"}, Constraints(1)), UsageError);
  const Translator sampling = make_translator({.sampling = true});
  EXPECT_THROW(sampling.translate({"haus"}, {{.prefix = "", .required = {"two"}}}), UsageError);
  // Whoever else uses the translator does not notice.
  EXPECT_EQ(texts_of(translator.translate({"haus"})),
            texts_of(make_translator({}).translate({"haus"})));
}

TEST(Suppress, WordsPhrasesAndPiecesDoNotCome) {
  const SearchOptions search{.beam_size = 1, .max_extra_length = 10};
  const auto comes = [&](const Lines& suppress) {
    std::string all;
    for (const std::string& text :
         texts_of(make_translator(search, 2, suppress).translate(kLines))) {
      all += text + "\n";
    }
    return all.find("schön") != std::string::npos;
  };
  ASSERT_TRUE(comes({})) << "the model of this test is to put it out";
  EXPECT_FALSE(comes({"schön"}));

  SearchTokens tokens = with_suppressed({.suppressed = {0}}, {"\xE2\x96\x81"}, small_tokenizer());
  ASSERT_EQ(tokens.suppressed.size(), 2U);
  EXPECT_EQ(small_tokenizer().piece(tokens.suppressed[1]), "\xE2\x96\x81");
  const std::vector<int32_t> several = small_tokenizer().encode("der Garten läuft");
  ASSERT_GT(several.size(), 1U);
  tokens = with_suppressed({}, {"der Garten läuft"}, small_tokenizer());
  EXPECT_EQ(tokens.suppressed_sequences, (TokenSequences{several}));
  EXPECT_THROW(with_suppressed({}, {"\xE2\x96\x81zzzz"}, small_tokenizer()), UsageError);
  EXPECT_THROW(with_suppressed({}, {""}, small_tokenizer()), UsageError);
  EXPECT_THROW(with_suppressed({}, {"\xFF"}, small_tokenizer()), UsageError);
}

// ------------------------------------------------------------------------------ contracts

std::vector<SearchOptions> all_kinds_of_search() {
  std::vector<SearchOptions> all(7, {.max_extra_length = 5, .n_best = 2});
  all[1].sampling = true;
  all[2].sampling = true;
  all[2].sampling_top_k = 5;
  all[2].temperature = 1.3;
  all[3].sampling = true;
  all[3].sampling_top_p = 0.8;
  all[4].beam_groups = 2;
  all[5].repetition_penalty = 1.5;
  all[5].no_repeat_ngram_size = 2;
  all[5].min_length = 6;
  all[6].coverage_penalty = 0.5;
  all[6].length_penalty_kind = LengthPenalty::kAverage;
  return all;
}

TEST(Contract06, HoldsWithEveryOption) {
  Lines lines;
  Constraints constraints;
  for (int i = 0; i < 6; ++i) {
    const Constraints mixed = mixed_constraints();
    for (std::size_t k = 0; k < kLines.size(); ++k) {
      lines.push_back(kLines[k] + (i == 0 ? "" : " " + kLines[static_cast<std::size_t>(i) % 5]));
      constraints.push_back(mixed[k]);
    }
  }
  Lines differs;
  for (SearchOptions options : all_kinds_of_search()) {
    Constraints mine = constraints;
    if (options.sampling || options.beam_groups > 1) {
      for (LineConstraints& each : mine) each.required.clear();
    }
    options.batch_tokens = 1'000'000;
    const Lines expected = texts_of(make_translator(options, 1).translate(lines, mine));
    options.batch_tokens = 60;
    EXPECT_EQ(texts_of(make_translator(options, 3).translate(lines, mine)), expected);
    Lines one_by_one;
    const Translator translator = make_translator(options, 1);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      for (const std::string& text : texts_of(translator.translate({lines[i]}, {mine[i]}))) {
        one_by_one.push_back(text);
      }
    }
    EXPECT_EQ(one_by_one, expected);
    EXPECT_NE(expected, differs) << "the options are to do something";
    differs = expected;
  }
}

TEST(Contract07, AStreamWithConstraintsGivesTheSame) {
  const Translator translator = make_translator({.max_extra_length = 5});
  const Constraints constraints = mixed_constraints();
  std::string bytes;
  for (const std::string& line : kLines) bytes += line + "\n";
  std::istringstream input(bytes);
  LineReader reader(input, "the input");
  Lines found;
  std::size_t next = 0;
  translator.translate_stream(
      reader, [&](const Translation& translation) { found.push_back(translation.text()); },
      [&] { return constraints.at(next++); });
  EXPECT_EQ(found, texts_of(translator.translate(kLines, constraints)));
  EXPECT_EQ(next, kLines.size());
}

TEST(LineConstraints, AnErrorOfTheirsEndsAStream) {
  const Translator translator = make_translator({});
  std::istringstream input("haus\nhaus\n");
  LineReader reader(input, "the input");
  int64_t given = 0, asked = 0;
  const std::string message = message_of([&] {
    translator.translate_stream(
        reader, [&](const Translation&) { ++given; },
        [&]() -> LineConstraints {
          if (++asked == 2) throw Error("there are too few");
          return {};
        });
  });
  EXPECT_EQ(message, "there are too few");
  EXPECT_EQ(given, 1);
}

}  // namespace
}  // namespace attend
