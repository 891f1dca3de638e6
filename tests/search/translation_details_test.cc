#include <algorithm>

#include <gtest/gtest.h>

#include "tests/search/small_translator.h"
#include "tests/support/captured_log.h"

namespace attend {
namespace {

TranslatorOptions detailed(int64_t workers) {
  TranslatorOptions options = options_of(workers);
  options.search.n_best = 2;
  options.details = {.tokens = true, .alignments = true, .attention = true};
  return options;
}

void expect_same_details(const Alternative& a, const Alternative& b) {
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.target_pieces, b.target_pieces);
  EXPECT_EQ(a.source_pieces, b.source_pieces);
  EXPECT_EQ(a.token_log_probs, b.token_log_probs);
  EXPECT_EQ(a.alignment, b.alignment);
  EXPECT_EQ(a.attention, b.attention);
}

TEST(Translator, SaysMoreWhereAsked) {
  const std::string line = "haus garten two dogs.";
  const Translation translation = small_translator(detailed(1)).translate_line(line);
  ASSERT_EQ(translation.alternatives.size(), 2U);
  for (const Alternative& each : translation.alternatives) {
    const auto tokens = static_cast<std::size_t>(each.tokens);
    ASSERT_EQ(each.target_pieces.size(), tokens);
    EXPECT_EQ(each.target_pieces.back(), "</s>");
    ASSERT_EQ(each.token_log_probs.size(), tokens);
    double sum = 0;
    for (const float log_prob : each.token_log_probs) sum += static_cast<double>(log_prob);
    EXPECT_NEAR(sum, each.log_prob, 1e-4);
    EXPECT_EQ(each.source_pieces.size(), small_tokenizer().encode(line).size() + 1);
    ASSERT_EQ(each.attention.size(), tokens);
    for (const auto& row : each.attention) EXPECT_EQ(row.size(), each.source_pieces.size());
    for (const WordLink& link : each.alignment) EXPECT_LT(link.source, 4);
  }
  const Translation plain = small_translator(options_of(1)).translate_line(line);
  EXPECT_EQ(plain.text(), translation.text());
  const Alternative& bare = plain.alternatives.front();
  EXPECT_TRUE(bare.target_pieces.empty() && bare.token_log_probs.empty() &&
              bare.alignment.empty() && bare.attention.empty());
  TranslatorOptions wrong = detailed(1);
  wrong.details.alignment_layer = 3;
  EXPECT_THROW(small_translator(wrong), UsageError);
}

TEST(Contract1Translator, ABlankLineHasNoDetails) {
  const Translation blank = small_translator(detailed(1)).translate_line("  ");
  ASSERT_EQ(blank.alternatives.size(), 1U);
  expect_same_details(blank.alternatives.front(), Alternative{});
}

TEST(Contract3Translator, DetailsOfPiecesFollowOneAnother) {
  const Translator translator = small_translator(detailed(2), 12);
  const CapturedLog log;
  const std::string first = "haus garten der die.", second = "two dogs play with.";
  const Alternative whole = translator.translate_line(first + " " + second).alternatives.front();
  const Alternative one = translator.translate_line(first).alternatives.front();
  const Alternative two = translator.translate_line(second).alternatives.front();
  ASSERT_EQ(log.count("translated in 2 pieces"), 1U);
  EXPECT_EQ(whole.text, one.text + " " + two.text);
  EXPECT_EQ(whole.target_pieces.size(), one.target_pieces.size() + two.target_pieces.size());
  EXPECT_EQ(whole.token_log_probs.size(), whole.target_pieces.size());
  EXPECT_EQ(whole.source_pieces.size(), one.source_pieces.size() + two.source_pieces.size());
  ASSERT_EQ(whole.attention.size(), whole.target_pieces.size());
  EXPECT_EQ(whole.attention.back(), two.attention.back());
  std::vector<WordLink> links = one.alignment;
  const auto words = static_cast<int32_t>(std::count(one.text.begin(), one.text.end(), ' ')) + 1;
  for (const WordLink& link : two.alignment) {
    links.push_back({link.source + 4, link.target + words});
  }
  EXPECT_EQ(whole.alignment, links);
}

TEST(Contract6Translator, DetailsDependNeitherOnWorkersNorOnCompany) {
  const Lines lines = made_up_lines(40, 5);
  const std::vector<Translation> together = small_translator(detailed(3)).translate(lines);
  const Translator alone = small_translator(detailed(1));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Translation each = alone.translate_line(lines[i]);
    ASSERT_EQ(each.alternatives.size(), together[i].alternatives.size());
    for (std::size_t rank = 0; rank < each.alternatives.size(); ++rank) {
      expect_same_details(each.alternatives[rank], together[i].alternatives[rank]);
    }
  }
}

}  // namespace
}  // namespace attend
