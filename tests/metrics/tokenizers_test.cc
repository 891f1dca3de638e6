#include "attend/metrics/tokenizers.h"

#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "attend/base/random.h"
#include "attend/metrics/metric.h"
#include "attend/metrics/tokenizer_models.h"
#include "tests/metrics/fixture.h"

namespace attend {
namespace {

template <typename Thrown, typename Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const Thrown& error) {
    return error.what();
  }
  return "";
}

TEST(BleuTokenizers, SayWhatModelTheyNeed) {
  EXPECT_NE(message_of<UsageError>([] {
              load_bleu_tokenizer(BleuTokenizer::kFlores200);
            }).find("flores200 needs a SentencePiece model"),
            std::string::npos);
  EXPECT_NE(message_of<UsageError>([] {
              load_bleu_tokenizer(BleuTokenizer::kZh, kPiecesModel);
            }).find("zh has no use for a model"),
            std::string::npos);
  EXPECT_THROW(load_bleu_tokenizer(BleuTokenizer::kSpm, "/missing.model"), Error);
  EXPECT_THROW(load_bleu_tokenizer(BleuTokenizer::kSpm, __FILE__), Error);
  const std::string missing =
      message_of<Error>([] { load_bleu_tokenizer(BleuTokenizer::kJaMecab, "/missing"); });
  EXPECT_EQ(missing,
            "tokenizer_model: /missing holds no sys.dic; expected the folder of a MeCab "
            "dictionary");
  EXPECT_THROW(load_bleu_tokenizer(BleuTokenizer::kJaMecab, "/a folder"), Error);
}

TEST(BleuTokenizers, SignaturesAreSacrebleus) {
  EXPECT_EQ(signature_of(BleuTokenizer::kSpm), "flores101");
  EXPECT_EQ(signature_of(BleuTokenizer::kFlores200), "flores200");
  EXPECT_EQ(signature_of(BleuTokenizer::kZh), "zh");
}

// Debian has no mecab-ko, and MeCab alone would cut Korean otherwise than sacreBLEU does.
TEST(BleuTokenizers, KoreanIsNotCutByMecabAlone) {
  const std::string message =
      message_of<Error>([] { load_bleu_tokenizer(BleuTokenizer::kKoMecab); });
  const bool is_installed = message.find("is not installed") == std::string::npos;
  if (is_installed && mecab_version().find("ko") != std::string::npos) {
    GTEST_SKIP() << "mecab-ko is installed";
  }
  EXPECT_NE(message.find(is_installed ? "needs mecab-ko" : "install Debian's libmecab2"),
            std::string::npos)
      << message;
}

/// Bytes of all kinds, with those that tokenizers look for more often.
std::string random_line(RandomGenerator& random) {
  static const std::string kFrequent[] = {" ",
                                          ".",
                                          ",",
                                          "-",
                                          "&quot;",
                                          "&amp;lt;",
                                          "\t",
                                          "'s ",
                                          "\xE4\xB8\xAD",
                                          "\xE3\x80\x82",
                                          "1",
                                          "\xE3\x80\x80",
                                          "\n",
                                          "\xCE\xA3"};
  std::string line;
  for (uint64_t length = random.uniform_index(60); length > 0; --length) {
    if (random.uniform_index(2) == 0) {
      line += kFrequent[random.uniform_index(std::size(kFrequent))];
    } else {
      line += static_cast<char>(random.uniform_index(256));
    }
  }
  return line == kNoReference ? "x" : line;
}

TEST(BleuTokenizers, AnyBytesAreCutIntoWordsWithoutSpaces) {
  RandomGenerator random(3);
  std::vector<LineTokenizer> tokenizers = {load_bleu_tokenizer(BleuTokenizer::kSpm, kPiecesModel)};
  for (const auto tokenizer :
       {BleuTokenizer::k13a, BleuTokenizer::kIntl, BleuTokenizer::kChar, BleuTokenizer::kZh}) {
    tokenizers.push_back(load_bleu_tokenizer(tokenizer));
  }
  tokenizers.emplace_back([](std::string_view line) {
    return tokenize_tercom({.normalized = true, .no_punct = true, .asian_support = true}, line);
  });
  try {
    tokenizers.push_back(load_bleu_tokenizer(BleuTokenizer::kJaMecab));
  } catch (const Error&) {  // not installed
  }
  for (int i = 0; i < 2000; ++i) {
    const std::string line = random_line(random);
    for (const LineTokenizer& tokenize : tokenizers) {
      const std::string words = tokenize(line);
      for (const std::string_view word : split_words(words)) EXPECT_FALSE(word.empty());
    }
  }
}

// Whatever the bytes: a text is its own best translation, and each score is within its bounds.
TEST(Metrics, ScoreAnyBytes) {
  RandomGenerator random(5);
  Lines lines, others;
  for (int i = 0; i < 300; ++i) {
    lines.push_back(random_line(random));
    others.push_back(random_line(random));
  }
  for (const Metric& metric :
       {make_metric(BleuOptions{.lowercase = true}), make_metric(ChrfOptions{.word_order = 2})}) {
    EXPECT_NEAR(metric.score(metric.statistics(lines, {lines})).value, 100, 1e-9);
    const double value = metric.score(metric.statistics(lines, {others})).value;
    EXPECT_GE(value, 0);
    EXPECT_LT(value, 100);
  }
  EXPECT_EQ(corpus_ter(lines, {lines}).edits, 0);
  EXPECT_GT(corpus_ter(lines, {others}).value, 10);
}

// A file without line ends: time and memory must not be those of a table of all pairs of words.
TEST(Metrics, ScoreALineOf100000Words) {
  std::string line, shifted;
  for (int i = 0; i < 100'000; ++i) {
    line += fmt::format("{} ", i % 5000);
    if (i % 1000 != 7) shifted += fmt::format("{} ", i % 5000);
  }
  EXPECT_EQ(corpus_ter({shifted}, {{line}}).edits, 100);
  EXPECT_GT(corpus_bleu({shifted}, {{line}}).value, 99);
  EXPECT_GT(corpus_chrf({shifted}, {{line}}).value, 99);
}

}  // namespace
}  // namespace attend
