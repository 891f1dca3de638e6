#include "attend/data/tokenizer.h"

#include <algorithm>
#include <thread>

#include <gtest/gtest.h>
#include <sentencepiece_processor.h>

#include "tests/data/test_files.h"

namespace attend {
namespace {

const Tokenizer& unigram_tokenizer() {
  static const Tokenizer tokenizer = [] {
    const std::vector<std::string> lines = made_up_lines(500, 1);
    return Tokenizer::train({.subword_model = SubwordModel::kUnigram, .vocabulary_size = 320},
                            lines_of(lines));
  }();
  return tokenizer;
}

void expect_survives(const Tokenizer& tokenizer, const std::string& text) {
  const std::vector<int32_t> ids = tokenizer.encode(text);
  ASSERT_EQ(tokenizer.decode(ids), text) << testing::PrintToString(text);
  for (const int32_t id : ids) {
    ASSERT_GT(id, tokenizer.eos_id()) << "a special token for " << testing::PrintToString(text);
    ASSERT_LT(id, tokenizer.vocabulary_size());
  }
}

TEST(Contract05, HardTextsSurvive) {
  const std::vector<std::string> texts = {"",
                                          " ",
                                          "  ",
                                          "\t",
                                          "a b",
                                          " a",
                                          "  a",
                                          "a ",
                                          "a  ",
                                          "a  b",
                                          "a\tb",
                                          "\t\ta  ",
                                          "a\r",
                                          "… ½ ﬁ ²",
                                          "😀 👨‍👩‍👧",
                                          "𓀀 ꧁ שלום नमस्ते 中文",
                                          "e\xCC\x81 é",
                                          "\xC2\xA0\xE3\x80\x80",
                                          "\xE2\x80\xA8",
                                          "<s>",
                                          "</s>",
                                          "<unk>",
                                          "<0x41>",
                                          "<0xE2><0x96><0x81>",
                                          " <s> </s>",
                                          "<pad>",
                                          " ⁇ ",
                                          "\xEF\xBF\xBD",
                                          "\xEF\xBB\xBF",
                                          std::string("a\0b", 3),
                                          std::string(1, '\0'),
                                          "\x01\x7F",
                                          "haus <s>garten</s>"};
  for (const std::string& text : texts) {
    expect_survives(small_tokenizer(), text);
    expect_survives(unigram_tokenizer(), text);
  }
}

TEST(Contract05, TheSpaceSymbolIsCarriedAsItsBytes) {
  const std::vector<std::string> texts = {"▁",
                                          "▁▁",
                                          " ▁",
                                          "▁ ",
                                          "a▁b",
                                          "a ▁ b",
                                          "▁haus",
                                          "▂",
                                          "▅",
                                          "▁\xF4\x8F\xBF\xBD",
                                          "\xF4\x8F\xBF\xBD▁\xF4\x8F\xBF\xBC▁\xF4\x8F\xBF\xBB",
                                          "<0xE2>▁<0x96>"};
  for (const std::string& text : texts) {
    expect_survives(small_tokenizer(), text);
    expect_survives(unigram_tokenizer(), text);
  }
  const std::vector<std::string> expected = {"▁haus", "<0xE2>", "<0x96>", "<0x81>", "▁"};
  EXPECT_EQ(small_tokenizer().encode_as_pieces("haus▁ "), expected);
}

TEST(Contract05, RandomUnicodeSurvives) {
  RandomGenerator random(11);
  for (int i = 0; i < 20000; ++i) {
    const std::string text = random_text(random, 24);
    expect_survives(i % 2 == 0 ? small_tokenizer() : unigram_tokenizer(), text);
    if (HasFatalFailure()) return;
  }
}

TEST(Contract05, TrainingOnHardTextWorksAndItSurvives) {
  RandomGenerator random(12);
  std::vector<std::string> lines = made_up_lines(300, 2);
  for (int i = 0; i < 300; ++i) {
    lines.push_back("a <s> b</s> <unk>\t<0x41>▁x▅ haus<s>garten" + random_text(random, 30));
  }
  for (const SubwordModel type : {SubwordModel::kBpe, SubwordModel::kUnigram}) {
    const Tokenizer tokenizer = Tokenizer::train(
        {.subword_model = type, .vocabulary_size = 3000, .character_coverage = 0.98},
        lines_of(lines));
    for (const std::string& line : lines) expect_survives(tokenizer, line);
    for (int i = 0; i < 2000; ++i) expect_survives(tokenizer, random_text(random, 24));
  }
}

// Encoded in parts, to bound memory; SentencePiece over the whole is the reference.
TEST(Contract05, AVeryLongTextIsEncodedAsAWhole) {
  std::string text;
  for (const std::string& line : made_up_lines(15'000, 9)) text += line + "  \t x ";
  ASSERT_GT(text.size(), std::size_t{1} << 19);
  for (const Tokenizer* tokenizer : {&small_tokenizer(), &unigram_tokenizer()}) {
    sentencepiece::SentencePieceProcessor reference;
    ASSERT_TRUE(reference.LoadFromSerializedProto(tokenizer->serialized()).ok());
    std::vector<int> expected;
    ASSERT_TRUE(reference.Encode(text, &expected).ok());
    const std::vector<int32_t> ids = tokenizer->encode(text);
    EXPECT_TRUE(std::equal(ids.begin(), ids.end(), expected.begin(), expected.end()));
    expect_survives(*tokenizer, text);
    expect_survives(*tokenizer, std::string(600'000, 'x'));
  }
}

TEST(Tokenizer, HasItsSpecialTokensFirst) {
  EXPECT_EQ(small_tokenizer().unk_id(), 0);
  EXPECT_EQ(small_tokenizer().bos_id(), 1);
  EXPECT_EQ(small_tokenizer().eos_id(), 2);
  EXPECT_EQ(small_tokenizer().piece(3), "<0x00>");
  EXPECT_EQ(small_tokenizer().vocabulary_size(), 320);
  EXPECT_TRUE(small_tokenizer().has_byte_fallback());
  const std::vector<std::string> expected = {"▁haus", "▁garten"};
  EXPECT_EQ(small_tokenizer().encode_as_pieces("haus garten"), expected);
  EXPECT_GE(small_tokenizer().longest_piece(), 9);
}

TEST(Tokenizer, DecodesWhatAModelMayMakeUp) {
  const Tokenizer& tokenizer = small_tokenizer();
  const int32_t first_byte = 3;
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{1, first_byte + 'a', 2}), "a");
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{first_byte + 0xC3}), "\xEF\xBF\xBD");
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{0}), " \xE2\x81\x87 ");
  for (const int32_t id : {-1, 320, INT32_MAX, INT32_MIN}) {
    expect_contains(message_of([&] { tokenizer.decode(std::vector<int32_t>{id}); }),
                    std::to_string(id));
    expect_contains(message_of([&] { tokenizer.piece(id); }), std::to_string(id));
  }
  RandomGenerator random(13);
  for (int i = 0; i < 2000; ++i) {
    std::vector<int32_t> ids(random.uniform_index(20));
    for (int32_t& id : ids) id = static_cast<int32_t>(random.uniform_index(320));
    ASSERT_TRUE(valid_utf8(tokenizer.decode(ids)));
  }
}

TEST(Tokenizer, TrainingIsDeterministic) {
  const std::vector<std::string> lines = made_up_lines(2000, 1), others = made_up_lines(2000, 2);
  for (const SubwordModel type : {SubwordModel::kBpe, SubwordModel::kUnigram}) {
    const TokenizerTrainingOptions options = {.subword_model = type, .vocabulary_size = 340};
    const Tokenizer one = Tokenizer::train(options, lines_of(lines));
    EXPECT_EQ(one.serialized(), Tokenizer::train(options, lines_of(lines)).serialized());
    EXPECT_EQ(one.fingerprint().size(), 16U);
    EXPECT_NE(one.fingerprint(), Tokenizer::train(options, lines_of(others)).fingerprint());
  }
}

TEST(Tokenizer, TrainsOnFilesTogether) {
  TestFolder folder;
  const std::vector<std::string> one = made_up_lines(200, 1), two = made_up_lines(200, 2);
  std::vector<std::string> both = one;
  both.insert(both.end(), two.begin(), two.end());
  const TokenizerTrainingOptions options = {.vocabulary_size = 320};
  const Tokenizer tokenizer = Tokenizer::train(
      options, {folder.write("one.txt", joined(one)), folder.write("two.gz", gzip(joined(two)))});
  EXPECT_EQ(tokenizer.serialized(), Tokenizer::train(options, lines_of(both)).serialized());
}

TEST(Tokenizer, TrainsOnASampleOfTheLines) {
  const std::vector<std::string> lines = made_up_lines(5000, 1);
  const auto train = [&](uint64_t seed) {
    return Tokenizer::train({.vocabulary_size = 300, .max_sentences = 20, .seed = seed},
                            lines_of(lines));
  };
  EXPECT_EQ(train(1).serialized(), train(1).serialized());
  EXPECT_NE(train(1).serialized(), train(2).serialized());
}

TEST(Tokenizer, AVocabularyTooLargeForTheTextIsLowered) {
  const std::vector<std::string> lines = {"a b c", "abc abc", "cab"};
  for (const SubwordModel type : {SubwordModel::kBpe, SubwordModel::kUnigram}) {
    const Tokenizer tokenizer =
        Tokenizer::train({.subword_model = type, .vocabulary_size = 8000}, lines_of(lines));
    EXPECT_LT(tokenizer.vocabulary_size(), 300);
    EXPECT_GT(tokenizer.vocabulary_size(), 259);
    expect_survives(tokenizer, "abc cab x");
  }
}

TEST(Tokenizer, TrainsOnALineOfAnyLength) {
  const std::vector<std::string> lines = {std::string(1'000'000, 'x'), "ä" + joined({3000, "ää"}),
                                          "some words"};
  expect_survives(Tokenizer::train({.vocabulary_size = 300}, lines_of(lines)), lines[1]);
}

TEST(Tokenizer, SaysWhatItCannotTrain) {
  const std::vector<std::string> nothing = {"", " ", "\xFF", "\t▁"};
  expect_contains(message_of([&] { Tokenizer::train({}, lines_of(nothing)); }), "no text");
  const std::vector<std::string> lines = made_up_lines(10, 1);
  const auto refused = [&](TokenizerTrainingOptions options) {
    EXPECT_THROW(Tokenizer::train(options, lines_of(lines)), UsageError);
  };
  refused({.vocabulary_size = 100});
  refused({.vocabulary_size = 2'000'000});
  refused({.character_coverage = 1.5});
  refused({.max_sentences = 0});
  for (const SubwordModel model : {SubwordModel::kBpe, SubwordModel::kUnigram}) {
    const std::string message = message_of([&] {
      Tokenizer::train({.subword_model = model, .vocabulary_size = 262}, lines_of(lines));
    });
    expect_contains(message, "vocabulary_size is 262, and the characters of the text alone");
    expect_contains(message, "raise it, or lower character_coverage");
  }
  TestFolder folder;
  const std::string binary = folder.write("binary.txt", std::string("a\0b\n", 4));
  const std::vector<std::string> paths = {binary};
  expect_contains(message_of([&] { Tokenizer::train({}, paths); }), binary);
}

TEST(Tokenizer, EncodesInManyThreads) {
  const std::vector<std::string> lines = made_up_lines(200, 3);
  std::vector<std::vector<int32_t>> expected;
  expected.reserve(lines.size());
  for (const std::string& line : lines) expected.push_back(small_tokenizer().encode(line + "▁"));
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  threads.reserve(wrong.size());
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < lines.size(); ++i) {
        if (small_tokenizer().encode(lines[i] + "▁") != expected[i]) ++wrong[t];
        if (small_tokenizer().decode(expected[i]) != lines[i] + "▁") ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace attend
