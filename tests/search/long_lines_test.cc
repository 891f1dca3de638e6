#include "attend/search/long_lines.h"

#include <gtest/gtest.h>

#include "tests/data/test_files.h"

namespace attend {
namespace {

using Texts = std::vector<std::string>;

Texts pieces_of(const std::string& text, int64_t max_tokens) {
  Texts pieces;
  for (const std::vector<int32_t>& piece : encode_in_pieces(small_tokenizer(), text, max_tokens)) {
    EXPECT_LE(std::ssize(piece), max_tokens);
    pieces.push_back(small_tokenizer().decode(piece));
  }
  return pieces;
}

/// All characters but white space.
std::string without_spaces(const Texts& texts) {
  std::string all;
  for (const std::string_view text : texts) {
    for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end) {
      end = begin + 1;
      while (end < text.size() && (static_cast<unsigned char>(text[end]) >> 6U) == 2) ++end;
      if (!is_blank(text.substr(begin, end - begin))) all += text.substr(begin, end - begin);
    }
  }
  return all;
}

int64_t tokens_in(const std::string& text) { return std::ssize(small_tokenizer().encode(text)); }

TEST(LongLines, AShortLineIsOnePiece) {
  const std::string text = "  der Garten.  Ein Haus. ";
  EXPECT_EQ(pieces_of(text, 100), Texts{text});
  EXPECT_EQ(pieces_of(text, tokens_in(text)), Texts{text});
}

TEST(LongLines, ABlankLineIsNone) {
  EXPECT_EQ(pieces_of("", 10), Texts{});
  EXPECT_EQ(pieces_of(std::string(100'000, ' '), 10), Texts{});
  EXPECT_EQ(pieces_of("\t\xE3\x80\x80", 10), Texts{});
}

TEST(LongLines, SentencesAreKeptWhole) {
  const Texts sentences = {"der Garten läuft.", "Ein Haus?", "\"Zwei dogs!\"", "play with two…",
                           "über das 3.5 Haus."};
  std::string text;
  for (const std::string& sentence : sentences) text += (text.empty() ? "" : "  ") + sentence;
  int64_t longest = 0;
  for (const std::string& sentence : sentences) longest = std::max(longest, tokens_in(sentence));
  ASSERT_LT(longest, tokens_in(text) / 2);
  const Texts pieces = pieces_of(text, longest);
  EXPECT_GT(pieces.size(), 1U);
  EXPECT_EQ(without_spaces(pieces), without_spaces(sentences));
  for (const std::string& piece : pieces) {
    const bool ends = std::any_of(sentences.begin(), sentences.end(), [&](const std::string& one) {
      return piece.size() >= one.size() && piece.ends_with(one);
    });
    EXPECT_TRUE(ends) << piece;
  }
}

TEST(LongLines, ChineseSentencesNeedNoSpaces) {
  EXPECT_EQ(pieces_of("中文中文。中文中文！", 20), (Texts{"中文中文。", "中文中文！"}));
}

TEST(LongLines, WithoutSentencesWordsAreKeptWhole) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "haus garten ";
  const Texts pieces = pieces_of(text, 12);
  EXPECT_GT(pieces.size(), 5U);
  for (const std::string& piece : pieces) {
    std::string rest = piece.ends_with(' ') ? piece : piece + " ";
    while (!rest.empty()) {
      const bool word = rest.starts_with("haus ") || rest.starts_with("garten ");
      ASSERT_TRUE(word) << piece;
      rest.erase(0, rest.find(' ') + 1);
    }
  }
  EXPECT_EQ(without_spaces(pieces), without_spaces({text}));
}

TEST(LongLines, WithoutSpacesCharactersAreKeptWhole) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "ü中😀x";
  const Texts pieces = pieces_of(text, 17);
  for (const std::string& piece : pieces) EXPECT_TRUE(valid_utf8(piece));
  EXPECT_EQ(without_spaces(pieces), text);
}

TEST(LongLines, ALimitBelowOneCharacterStillCarriesAllTokens) {
  for (const int64_t limit : {1, 2, 3}) {
    std::vector<int32_t> all;
    for (const auto& piece : encode_in_pieces(small_tokenizer(), "😀", limit)) {
      EXPECT_LE(std::ssize(piece), limit);
      all.insert(all.end(), piece.begin(), piece.end());
    }
    EXPECT_EQ(small_tokenizer().decode(all), "😀");
  }
}

TEST(LongLines, NothingIsLostFromRandomText) {
  RandomGenerator random(4);
  for (int i = 0; i < 200; ++i) {
    const std::string text = random_text(random, 200);
    const Texts pieces = pieces_of(text, 12);
    EXPECT_EQ(without_spaces(pieces), without_spaces({text}));
    // What does not stand at a cut is kept with its white space.
    for (const std::string& piece : pieces) EXPECT_NE(text.find(piece), std::string::npos);
  }
}

TEST(LongLines, MegabytesTakeNoTimeToSpeakOf) {
  const Texts hard = {std::string(300'000, '.'), std::string(300'000, 'x'),
                      "." + std::string(300'000, '.') + "x", std::string(100'000, '!') + " a"};
  for (const std::string& text : hard) EXPECT_FALSE(pieces_of(text, 1000).empty());
}

}  // namespace
}  // namespace attend
