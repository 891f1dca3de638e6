#include "attend/metrics/bleu.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "attend/base/error.h"

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

// Papineni et al. 2002, §2.1: "the" stands seven times in the candidate and at most twice in a
// reference, so that the modified unigram precision is 2/7.
TEST(Bleu, ClipsAsInThePaper) {
  const BleuScore score =
      corpus_bleu({"the the the the the the the"},
                  {{"The cat is on the mat"}, {"There is a cat on the mat"}}, {.lowercase = true});
  EXPECT_EQ(score.counts[0], 2);
  EXPECT_EQ(score.totals[0], 7);
  EXPECT_EQ(score.counts[1], 0);
}

// Unigrams 5/6, bigrams 3/5, trigrams 2/4, 4-grams 1/3; 6 words against 7.
TEST(Bleu, IsWhatOneComputesByHand) {
  const BleuScore score = corpus_bleu({"a b c d x e"}, {{"a b c d e f g"}});
  const double mean = std::pow(5.0 / 6 * 3 / 5 * 2 / 4 * 1 / 3, 0.25);
  EXPECT_NEAR(score.value, 100 * std::exp(1 - 7.0 / 6) * mean, 1e-9);
  EXPECT_EQ(score.format(),
            "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:attend-0.1.0 = 45.5 "
            "83.3/60.0/50.0/33.3 (BP = 0.846 ratio = 0.857 hyp_len = 6 ref_len = 7)");
}

TEST(Bleu, CountsAgainstTheClosestReferenceLength) {
  const References references = {{"a b c d e f g"}, {"a b c"}, {"a b c d e f g h"}};
  EXPECT_EQ(corpus_bleu({"a b c d e"}, references).reference_length, 3);  // 2 off on both sides
  EXPECT_EQ(corpus_bleu({"a b c d e f"}, references).reference_length, 7);
}

TEST(Bleu, LeavesOutOrdersThatASentenceIsTooShortFor) {
  EXPECT_NEAR(sentence_bleu("one word", {"one word"}).value, 100, 1e-9);
  EXPECT_EQ(sentence_bleu("one word", {"one word"}, {.effective_order = false}).value, 0);
  EXPECT_EQ(corpus_bleu({"one word"}, {{"one word"}}).value, 0);
  EXPECT_NEAR(corpus_bleu({"one word"}, {{"one word"}}, {.effective_order = true}).value, 100,
              1e-9);
  EXPECT_EQ(signature_fields(sentence_bleu("a", {"a"}).signature)[2].second, "yes");
}

TEST(Bleu, EmptyLinesCountAsNoWords) {
  EXPECT_EQ(corpus_bleu({"", ""}, {{"", ""}}).value, 0);
  const BleuScore score = corpus_bleu({"", "a b c d"}, {{"e f", "a b c d"}});
  EXPECT_EQ(score.hypothesis_length, 4);
  EXPECT_EQ(score.reference_length, 6);
  EXPECT_NEAR(score.value, 100 * std::exp(1 - 6.0 / 4), 1e-9);
}

TEST(Bleu, SignatureSaysWhatWasComputed) {
  EXPECT_EQ(corpus_bleu({"A"}, {{"a"}, {"b"}},
                        {.tokenizer = BleuTokenizer::kIntl,
                         .lowercase = true,
                         .smoothing = BleuSmoothing::kFloor,
                         .smooth_value = 0.25,
                         .effective_order = true})
                .signature,
            "nrefs:2|case:lc|eff:yes|tok:intl|smooth:floor[0.25]|version:attend-0.1.0");
  EXPECT_EQ(corpus_bleu({"A"}, {{"a"}}, {.smoothing = BleuSmoothing::kAddK}).signature,
            "nrefs:1|case:mixed|eff:no|tok:13a|smooth:add-k[1.00]|version:attend-0.1.0");
}

TEST(Bleu, TheOrderIsSaidWhereItIsNotFour) {
  const BleuScore score = corpus_bleu({"a b c"}, {{"a b d"}}, {.max_ngram_order = 2});
  EXPECT_NEAR(score.value, 100 * std::sqrt(2.0 / 3 * 1 / 2), 1e-9);
  EXPECT_EQ(score.precisions.size(), 2U);
  EXPECT_EQ(score.signature,
            "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|order:2|version:attend-0.1.0");
  for (const int64_t order : {0, 101}) {
    EXPECT_NE(message_of<UsageError>(
                  [order] { corpus_bleu({"a"}, {{"a"}}, {.max_ngram_order = order}); }),
              "");
  }
}

TEST(Bleu, AMissingReferenceIsNone) {
  const std::string none(kNoReference);
  const References references = {{"a b c d", none}, {none, "e f g h i"}, {"a b", "e f g h"}};
  const BleuScore score = corpus_bleu({"a b c d", "e f g h"}, references);
  EXPECT_EQ(score.reference_length, 8);
  EXPECT_EQ(signature_fields(score.signature)[0].second, "2");
  EXPECT_EQ(
      signature_fields(corpus_bleu({"a", "b"}, {{"a", none}, {"b", "b"}}).signature)[0].second,
      "var");
  // An empty one is there, and the closest in length to nothing.
  EXPECT_EQ(corpus_bleu({""}, {{"a b c d"}, {""}}).reference_length, 0);
  EXPECT_EQ(message_of<UsageError>([&] {
              corpus_bleu({"a", "b"}, {{"a", none}, {"a", none}});
            }),
            "line 2 has no reference in any of the sets: expected one at least");
}

TEST(Bleu, MalformedUtf8IsScored) {
  for (const char* tokenizer : {"13a", "intl", "char", "zh", "none"}) {
    BleuOptions options;
    options.tokenizer = parse_bleu_tokenizer(tokenizer);
    options.lowercase = true;
    EXPECT_NEAR(
        corpus_bleu({"a b\xFF c\xE2\x82 d \xC3"}, {{"a b\xFF c\xE2\x82 d \xC3"}}, options).value,
        100, 1e-9)
        << tokenizer;
  }
}

TEST(Bleu, RefusesTextThatDoesNotGoTogether) {
  EXPECT_EQ(message_of<UsageError>([] {
              corpus_bleu({"a", "b", "c"}, {{"a", "b"}});
            }),
            "reference has 2 lines and the hypotheses have 3: line N of one must translate line N "
            "of the other");
  EXPECT_NE(message_of<UsageError>([] {
              corpus_bleu({"a"}, {{"a"}, {"b", "c"}});
            }).find("reference 2 has 2 lines and the hypotheses have 1"),
            std::string::npos);
  EXPECT_NE(message_of<UsageError>([] { corpus_bleu({"a"}, {}); }), "");
  EXPECT_NE(message_of<Error>([] { corpus_bleu({}, {{}}); }), "");
  EXPECT_EQ(
      message_of<UsageError>([] { parse_bleu_tokenizer("13b"); }),
      "unknown BLEU tokenizer '13b': expected one of 13a, intl, char, zh, ja-mecab, ko-mecab, "
      "spm, flores101, flores200, spBLEU-1K, none");
  EXPECT_EQ(message_of<UsageError>([] { parse_bleu_smoothing("add"); }),
            "unknown BLEU smoothing 'add': expected none, floor, add-k or exp");
  EXPECT_NE(message_of<UsageError>([] { corpus_bleu({"a"}, {{"a"}}, {.smooth_value = 1.0}); }), "");
  EXPECT_NE(message_of<UsageError>([] {
              corpus_bleu({"a"}, {{"a"}},
                          {.smoothing = BleuSmoothing::kFloor, .smooth_value = -1.0});
            }),
            "");
}

TEST(Bleu, NamesComeBack) {
  for (const char* name : {"none", "floor", "add-k", "exp"}) {
    EXPECT_EQ(name_of(parse_bleu_smoothing(name)), name);
  }
  for (const char* name : {"13a", "intl", "char", "zh", "ja-mecab", "ko-mecab", "spm", "flores101",
                           "flores200", "spBLEU-1K", "none"}) {
    EXPECT_EQ(name_of(parse_bleu_tokenizer(name)), name);
  }
}

}  // namespace
}  // namespace attend
