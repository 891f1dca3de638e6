#include "attend/data/sentencepiece_file.h"

#include <cstring>
#include <limits>

#include <gtest/gtest.h>
#include <sentencepiece_trainer.h>

#include "attend/base/log.h"
#include "tests/data/sentences.h"
#include "tests/data/test_files.h"

namespace attend {
namespace {

/// As SentencePiece trains by default: with a normalisation table, without byte fallback.
const std::string& foreign_model() {
  static const std::string model = [] {
    std::string made;
    Sentences sentences(made_up_lines(500, 1));
    const auto status = sentencepiece::SentencePieceTrainer::Train(
        {{"vocab_size", "60"}, {"hard_vocab_limit", "false"}, {"minloglevel", "3"}}, &sentences,
        &made);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return made;
  }();
  return model;
}

// Protocol buffers by hand.
std::string bytes_field(int number, const std::string& bytes) {
  std::string field(1, static_cast<char>(number << 3 | 2));
  for (std::size_t size = bytes.size(); true; size >>= 7) {
    field += static_cast<char>((size & 0x7F) | (size > 0x7F ? 0x80 : 0));
    if (size <= 0x7F) break;
  }
  return field + bytes;
}
std::string piece(const std::string& text, float score, int type) {
  std::string bits(4, '\0');
  std::memcpy(bits.data(), &score, 4);
  return bytes_field(1, bytes_field(1, text) + "\x15" + bits + "\x18" + static_cast<char>(type));
}
const std::string kUnknown = piece("<unk>", 0, 2);

void expect_refused(const std::string& bytes, const std::string& reason) {
  const std::string message =
      message_of([&] { Tokenizer::from_serialized(bytes, "dir/tokenizer.model"); });
  expect_contains(message, "dir/tokenizer.model");
  expect_contains(message, reason);
}

/// Loads it and, where that works, uses it: nothing may crash.
bool survives(const std::string& bytes) {
  try {
    const Tokenizer tokenizer = Tokenizer::from_serialized(bytes, "a model");
    for (const std::string text : {"Ein haus läuft", "½ ﬁ <s> ㍿ \t", "▁", "中文 e\xCC\x81"}) {
      tokenizer.decode(tokenizer.encode(text));
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(SentencePieceFile, ReadsWhatSentencePieceWrites) {
  const SentencePieceFile own = parse_sentencepiece_file(small_tokenizer().serialized(), "own");
  ASSERT_EQ(std::ssize(own.pieces), small_tokenizer().vocabulary_size());
  for (int32_t id = 0; id < small_tokenizer().vocabulary_size(); ++id) {
    EXPECT_EQ(own.pieces[id].text, small_tokenizer().piece(id));
  }
  EXPECT_EQ(own.pieces[0].type, PieceType::kUnknown);
  EXPECT_EQ(own.pieces[1].type, PieceType::kControl);
  EXPECT_EQ(own.pieces[3].type, PieceType::kByte);
  EXPECT_EQ(own.pieces[300].type, PieceType::kNormal);
  EXPECT_TRUE(own.byte_fallback);
  EXPECT_TRUE(own.adds_space);
}

TEST(SentencePieceFile, UsesAModelMadeElsewhere) {
  TestFolder folder;
  const Tokenizer tokenizer = Tokenizer::load(folder.write("tokenizer.model", foreign_model()));
  EXPECT_FALSE(tokenizer.has_byte_fallback());
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("haus  garten")), "haus garten");  // as it normalises
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("two dogs…")), "two dogs...");
  EXPECT_EQ(tokenizer.serialized(), foreign_model());
}

TEST(Contract19, AModelThatIsNoneIsNamed) {
  expect_refused("", "no SentencePiece model");
  expect_refused("this is a text file\n", "no SentencePiece model");
  expect_refused(std::string(1000, '\xFF'), "no SentencePiece model");
  TestFolder folder;
  expect_contains(message_of([&] { Tokenizer::load(folder.path("missing.model")); }),
                  "missing.model");
  expect_contains(message_of([&] { Tokenizer::load(folder.path("")); }), "is a folder");
}

TEST(Contract19, PiecesAreChecked) {
  EXPECT_TRUE(survives(kUnknown + piece("a", -1, 1)));
  expect_refused(kUnknown, "no pieces but special ones");
  expect_refused(piece("a", -1, 1), "unknown tokens");
  expect_refused(kUnknown + piece("a", -1, 1) + piece("a", -1, 1), "twice");
  expect_refused(kUnknown + piece("", -1, 1), "piece 1");
  expect_refused(kUnknown + piece("\xFF", -1, 1), "piece 1");
  expect_refused(kUnknown + piece(std::string("a\0b", 3), -1, 1), "piece 1");
  expect_refused(kUnknown + piece(std::string(5000, 'a'), -1, 1), "piece 1");
  expect_refused(kUnknown + piece("a", std::numeric_limits<float>::quiet_NaN(), 1), "score");
  expect_refused(kUnknown + piece("a", std::numeric_limits<float>::infinity(), 1), "score");
  expect_refused(kUnknown + piece("a", -1, 9), "type 9");
  expect_refused(kUnknown + piece("a", -1, 1) + piece("<0xG1>", 0, 6), "<0xG1>");
  const std::string byte_fallback = bytes_field(2, std::string("\x98\x02\x01"));
  expect_refused(kUnknown + piece("a", -1, 1) + byte_fallback, "<0x00>");
}

TEST(Contract19, TheNormalisationTableIsChecked) {
  const auto with_table = [](const std::string& table) {
    return kUnknown + piece("a", -1, 1) + bytes_field(3, bytes_field(2, table));
  };
  const auto size = [](uint32_t value) {
    std::string bits(4, '\0');
    std::memcpy(bits.data(), &value, 4);
    return bits;
  };
  const std::string units(1024, '\0'), strings("x\0", 2);
  EXPECT_TRUE(survives(with_table(size(1024) + units + strings)));
  expect_refused(with_table("ab"), "normalisation table");
  expect_refused(with_table(size(1024) + units), "normalisation table");
  expect_refused(with_table(size(1020) + units + strings), "normalisation table");
  expect_refused(with_table(size(0xFFFFFC00) + units + strings), "normalisation table");
  expect_refused(with_table(size(1024) + units + "x"), "normalisation table");
  std::string far = units;  // the root's children lie outside
  far[3] = '\x40';
  expect_refused(with_table(size(1024) + far + strings), "normalisation table");
  std::string leaf = units;  // a leaf's string lies outside: unit 1, and its value in unit 1 ^ 2
  leaf[4 * 1] = 1;
  leaf[4 * 1 + 1] = 1 | 2 << 2;
  leaf[4 * 3] = 100;
  expect_refused(with_table(size(1024) + leaf + strings), "normalisation table");
}

TEST(Contract19, ATruncatedModelNeverCrashes) {
  for (const std::string& whole : {small_tokenizer().serialized(), foreign_model()}) {
    const std::size_t step = std::max<std::size_t>(1, whole.size() / 1500);
    for (std::size_t bytes = 0; bytes < whole.size(); bytes += step) {
      survives(whole.substr(0, bytes));
    }
  }
}

TEST(Contract19, ADamagedModelNeverCrashes) {
  set_log_level(LogLevel::kQuiet);  // a thousand warnings of models without byte fallback
  RandomGenerator random(21);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = i % 3 == 0 ? foreign_model() : small_tokenizer().serialized();
    for (uint64_t n = 1 + random.uniform_index(8); n > 0; --n) {
      const uint64_t place = random.uniform_index(bytes.size());
      switch (random.uniform_index(3)) {
        case 0:
          bytes[place] = static_cast<char>(random.uniform_index(256));
          break;
        case 1:
          bytes[place] ^= static_cast<char>(1 << random.uniform_index(8));
          break;
        default:
          bytes.erase(place, random.uniform_index(4));
          break;
      }
    }
    refused += survives(bytes) ? 0 : 1;
  }
  EXPECT_GT(refused, 1000);
  set_log_level(LogLevel::kNormal);
}

}  // namespace
}  // namespace attend
