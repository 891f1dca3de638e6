#include "attend/data/bpe_dropout.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>

#include <gtest/gtest.h>
#include <sentencepiece_trainer.h>

#include "attend/data/text.h"
#include "tests/data/sentences.h"
#include "tests/data/test_files.h"

namespace attend {
namespace {

using Ids = std::vector<int32_t>;

Ids segmented(const BpeDropout& dropout, const Ids& ids, double probability, uint64_t seed) {
  Ids made;
  dropout(ids, probability, RandomGenerator(seed), made);
  return made;
}

/// Trained by SentencePiece with its own defaults and what `more` says.
Tokenizer foreign(const std::unordered_map<std::string, std::string>& more) {
  std::unordered_map<std::string, std::string> arguments = {{"model_type", "bpe"},
                                                            {"vocab_size", "120"},
                                                            {"hard_vocab_limit", "false"},
                                                            {"minloglevel", "3"}};
  for (const auto& [name, value] : more) arguments[name] = value;
  Sentences sentences(made_up_lines(500, 1));
  std::string made;
  const auto status = sentencepiece::SentencePieceTrainer::Train(arguments, &sentences, &made);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return Tokenizer::from_serialized(made, "foreign");
}

/// Without dropout the merges give what SentencePiece gives.
void expect_same_as_sentencepiece(const Tokenizer& tokenizer,
                                  const std::vector<std::string>& lines) {
  const BpeDropout dropout(tokenizer, "dropout");
  for (const std::string& line : lines) {
    const Ids ids = tokenizer.encode(line);
    ASSERT_EQ(segmented(dropout, ids, 0, 1), ids) << line;
  }
}

std::vector<std::string> hard_lines() {
  std::vector<std::string> lines = made_up_lines(500, 7);
  RandomGenerator random(3);
  for (int i = 0; i < 500; ++i) lines.push_back(random_text(random, 60));
  for (const char* line : {"", " ", "   two  dogs ", "▁two▁dogs", "½ ﬁ <s> ㍿ \t", "haushaushaus",
                           "gartengartengartenüberüber", "<0x41><unk>"}) {
    lines.emplace_back(line);
  }
  return lines;
}

TEST(BpeDropout, WithoutDropoutItIsSentencePiecesSegmentation) {
  expect_same_as_sentencepiece(small_tokenizer(), hard_lines());
}

TEST(BpeDropout, WithoutDropoutItIsThatOfModelsMadeElsewhere) {
  const std::vector<std::unordered_map<std::string, std::string>> models = {
      {},
      {{"byte_fallback", "true"}, {"vocab_size", "400"}},
      {{"user_defined_symbols", "dog,ei,▁with"}},
      {{"split_by_whitespace", "false"}, {"vocab_size", "300"}},
      {{"treat_whitespace_as_suffix", "true"}},
      {{"add_dummy_prefix", "false"}, {"remove_extra_whitespaces", "false"}},
      {{"character_coverage", "0.98"}},
  };
  for (const auto& model : models) {
    SCOPED_TRACE(model.empty() ? "defaults" : model.begin()->first);
    expect_same_as_sentencepiece(foreign(model), hard_lines());
  }
}

TEST(BpeDropout, WithoutDropoutItIsThatOfAWholeCorpus) {
  const char* const shared = std::getenv("ATTEND_SHARED");
  const std::filesystem::path folder =
      std::filesystem::path(shared != nullptr ? shared : ATTEND_SOURCE_DIR "/../shared") / "data" /
      "multi30k";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "there is no " << folder;
  const std::vector<std::string> paths = {folder / "train.en.gz", folder / "train.de.gz"};
  const Tokenizer tokenizer =
      Tokenizer::train({.vocabulary_size = 8000, .max_sentences = 10000}, paths);
  for (const std::string& path : paths) {
    std::vector<std::string> lines;
    LineReader reader(path);
    for (std::string line; reader.next(line);) lines.push_back(line);
    EXPECT_EQ(lines.size(), 29000U);
    expect_same_as_sentencepiece(tokenizer, lines);
  }
}

TEST(BpeDropout, TheTextStaysTheSame) {
  const BpeDropout dropout(small_tokenizer(), "dropout");
  int differing = 0;
  for (const std::string& line : hard_lines()) {
    const Ids ids = small_tokenizer().encode(line);
    for (const double probability : {0.1, 0.5, 0.9}) {
      const Ids made = segmented(dropout, ids, probability, 5);
      ASSERT_EQ(small_tokenizer().decode(made), line);
      differing += made != ids ? 1 : 0;
    }
  }
  EXPECT_GT(differing, 500);
}

TEST(BpeDropout, IsAFunctionOfItsGenerator) {
  const BpeDropout dropout(small_tokenizer(), "dropout");
  const Ids ids = small_tokenizer().encode("Ein garten läuft über schön");
  EXPECT_EQ(segmented(dropout, ids, 0.5, 1), segmented(dropout, ids, 0.5, 1));
  EXPECT_NE(segmented(dropout, ids, 0.5, 1), segmented(dropout, ids, 0.5, 2));
}

// A model by hand, as a protocol buffer.
std::string bytes_field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
std::string piece(const std::string& text, float score, int type) {
  std::string bits(4, '\0');
  std::memcpy(bits.data(), &score, 4);
  return bytes_field(1, bytes_field(1, text) + "\x15" + bits + "\x18" + static_cast<char>(type));
}
/// Pieces a, b, c; the merges ab, then bc, then abc, which is ab c or a bc.
Tokenizer abc_tokenizer(int type_of_abc = 1) {
  const std::string model_type_bpe = bytes_field(2, std::string("\x18\x02", 2));
  const std::string no_space = bytes_field(3, std::string("\x18\x00", 2));
  return Tokenizer::from_serialized(piece("<unk>", 0, 2) + piece("a", -10, 1) + piece("b", -11, 1) +
                                        piece("c", -12, 1) + piece("ab", 0, 1) +
                                        piece("bc", -1, 1) + piece("abc", -2, type_of_abc) +
                                        model_type_bpe + no_space,
                                    "abc");
}

TEST(BpeDropout, LeavesMergesOutAsThePaperSays) {
  const Tokenizer tokenizer = abc_tokenizer();
  const BpeDropout dropout(tokenizer, "dropout");
  const Ids ids = tokenizer.encode("abc");
  ASSERT_EQ(ids.size(), 1U);
  constexpr int kTrials = 40000;
  constexpr double kP = 0.3;
  std::map<std::string, int> counts;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::string spelled;
    for (const int32_t id : segmented(dropout, ids, kP, trial))
      spelled += tokenizer.piece(id) + " ";
    ++counts[spelled];
  }
  // Algorithm 1 by hand: first ab or, where that alone is left out, bc; then abc or nothing.
  const std::map<std::string, double> expected = {
      {"abc ", (1 - kP) * (1 - kP) + kP * (1 - kP) * (1 - kP)},
      {"ab c ", (1 - kP) * kP},
      {"a bc ", kP * (1 - kP) * kP},
      {"a b c ", kP * kP}};
  ASSERT_EQ(counts.size(), expected.size());
  for (const auto& [spelled, share] : expected) {
    const double deviation = std::sqrt(share * (1 - share) / kTrials);
    EXPECT_NEAR(static_cast<double>(counts[spelled]) / kTrials, share, 4 * deviation) << spelled;
  }
}

TEST(BpeDropout, RefusesWhatHasNoMerges) {
  const Tokenizer unigram = foreign({{"model_type", "unigram"}, {"vocab_size", "60"}});
  expect_contains(message_of([&] { BpeDropout(unigram, "source_bpe_dropout"); }),
                  "source_bpe_dropout: its tokenizer is no BPE model");
  constexpr int kUnused = 5;
  expect_contains(message_of([&] { BpeDropout(abc_tokenizer(kUnused), "here"); }),
                  "here: the tokenizer's piece 'abc' is marked as unused");
}

TEST(PairDropout, SidesAreDrawnApartAndWhatWouldBecomeTooLongStays) {
  const auto dropout = std::make_shared<const BpeDropout>(small_tokenizer(), "dropout");
  const Ids ids = small_tokenizer().encode("Ein garten läuft über schön garten");
  PairDropout pair{dropout, dropout, 0.5, 0.5, 1000};
  Ids source = ids, target = ids;
  pair(1, source, target);
  EXPECT_NE(source, ids);
  EXPECT_NE(target, ids);
  EXPECT_NE(source, target);
  Ids again = ids, other = ids;
  pair(1, again, other);
  EXPECT_EQ(again, source);
  pair.max_length = std::ssize(ids);
  for (uint64_t key = 0; key < 50; ++key) {
    Ids kept = ids, kept_too = ids;
    pair(key, kept, kept_too);
    EXPECT_LE(std::ssize(kept), std::ssize(ids));
  }
  PairDropout one{.target = dropout, .target_probability = 0.5};
  Ids left = ids, changed = ids;
  one(1, left, changed);
  EXPECT_EQ(left, ids);
  EXPECT_EQ(changed, target);
  EXPECT_FALSE(PairDropout{});
}

}  // namespace
}  // namespace attend
