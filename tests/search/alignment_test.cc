#include "attend/search/alignment.h"

#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "tests/data/test_files.h"

namespace attend {
namespace {

using Words = std::vector<int32_t>;

/// The words that the pieces of `text` are in, each as often as it has pieces, without repetition.
Words distinct_words(const std::string& text) {
  const Words words = words_of(small_tokenizer(), small_tokenizer().encode(text));
  EXPECT_TRUE(std::is_sorted(words.begin(), words.end())) << text;
  Words distinct = words;
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  return distinct;
}

TEST(WordsOf, AreCountedAtSpaces) {
  EXPECT_EQ(words_of(small_tokenizer(), {}), Words());
  EXPECT_EQ(distinct_words("haus"), Words({0}));
  EXPECT_EQ(distinct_words("haus garten der"), Words({0, 1, 2}));
  // Some are cut into many pieces, some into bytes.
  EXPECT_EQ(distinct_words("two unforeseeable-words 😀😀 x"), Words({0, 1, 2, 3}));
  EXPECT_EQ(distinct_words("  haus   garten  "), Words({0, 1}));
  EXPECT_EQ(distinct_words("   "), Words({0}));
  EXPECT_EQ(distinct_words("a ▁ b"), Words({0, 1, 2}));  // U+2581 is text
}

TEST(WordsOf, EveryTokenIsInItsWord) {
  const std::vector<std::string> words = {"haus", "unknowable", "…", "garten"};
  Words expected;
  std::vector<int32_t> tokens;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::vector<int32_t> more = small_tokenizer().encode(words[i]);
    tokens.insert(tokens.end(), more.begin(), more.end());
    expected.insert(expected.end(), more.size(), static_cast<int32_t>(i));
  }
  EXPECT_EQ(words_of(small_tokenizer(), tokens), expected);
}

TEST(AlignWords, LinksEachTargetTokenToWhatItAttendsToMost) {
  // Three source tokens of two words and an end; three target tokens of two words and an end.
  const std::vector<std::vector<float>> attention = {{0.1F, 0.2F, 0.6F, 0.1F},
                                                     {0.3F, 0.3F, 0.2F, 0.2F},
                                                     {0.1F, 0.2F, 0.1F, 0.6F},
                                                     {0.0F, 0.0F, 0.9F, 0.1F}};
  const Words source = {0, 0, 1}, target = {0, 1, 1};
  EXPECT_EQ(align_words(attention, source, target), (std::vector<WordLink>{{0, 1}, {1, 0}}));
  EXPECT_TRUE(align_words({{1.0F}, {1.0F}}, {}, Words({0})).empty());
  EXPECT_TRUE(align_words({{0.5F, 0.5F}}, Words({0}), {}).empty());
}

TEST(AlignmentLayer, IsTheLastButOneUnlessAskedFor) {
  EXPECT_EQ(alignment_layer(0, 6), 4);
  EXPECT_EQ(alignment_layer(0, 2), 0);
  EXPECT_EQ(alignment_layer(0, 1), 0);
  EXPECT_EQ(alignment_layer(6, 6), 5);
  EXPECT_THROW(alignment_layer(7, 6), UsageError);
  EXPECT_THROW(alignment_layer(-1, 6), UsageError);
}

}  // namespace
}  // namespace attend
