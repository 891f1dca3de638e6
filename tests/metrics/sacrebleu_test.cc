#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include "attend/base/error.h"
#include "attend/metrics/tokenizers.h"
#include "attend/metrics/unicode.h"
#include "tests/metrics/fixture.h"

namespace attend {
namespace {

using nlohmann::json;

const json& fixture() {
  static const json parsed = read_fixture("sacrebleu_fixture.json");
  return parsed;
}

std::string line_of(Score score) {
  score.signature = without_version(score.signature);
  return score.format(8);
}

/// Whether there is a MeCab to test with.
bool has_mecab() {
  try {
    load_bleu_tokenizer(BleuTokenizer::kJaMecab);
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool is_of_mecab(const json& expected) {
  return expected["options"].value("tokenize", "") == "ja-mecab";
}

/// Scores all cases of one metric, as a corpus and line by line.
template <typename Corpus, typename Sentence>
void compare(const std::string& metric, Corpus corpus, Sentence sentence, bool with_mecab = false) {
  int cases = 0;
  for (const json& expected : fixture()["cases"]) {
    if (expected["metric"] != metric || is_of_mecab(expected) != with_mecab) continue;
    ++cases;
    const json& text = fixture()["corpora"][expected["corpus"].get<std::string>()];
    const auto hypotheses = text["hypotheses"].get<Lines>();
    References references = references_from(text["references"]);
    references.resize(expected["references"].get<size_t>());
    SCOPED_TRACE(expected["corpus"].dump() + " " + expected["options"].dump());
    EXPECT_EQ(line_of(corpus(hypotheses, references, expected["options"])), expected["line"]);
    for (size_t i = 0; i < hypotheses.size(); ++i) {
      Lines translations;
      for (const std::string_view line : references_of(references, i)) {
        translations.emplace_back(line);
      }
      EXPECT_NEAR(sentence(hypotheses[i], translations, expected["options"]).value,
                  expected["sentences"][i].get<double>(), 1e-6)
          << "line " << i + 1 << ": " << hypotheses[i];
    }
  }
  EXPECT_GT(cases, with_mecab ? 5 : 50);
}

void compare_bleu(bool with_mecab) {
  compare(
      "bleu",
      [](const Lines& hypotheses, const References& references, const json& options) {
        return corpus_bleu(hypotheses, references, bleu_options(options));
      },
      [](const std::string& hypothesis, const Lines& references, const json& options) {
        return sentence_bleu(hypothesis, references, bleu_options(options));
      },
      with_mecab);
}

TEST(Contract25, BleuIsSacrebleus) { compare_bleu(false); }

TEST(Contract25, BleuOfJapaneseIsSacrebleus) {
  if (!has_mecab()) GTEST_SKIP() << "libmecab2 or mecab-ipadic-utf8 is not installed";
  compare_bleu(true);
}

TEST(Contract25, ChrfIsSacrebleus) {
  compare(
      "chrf",
      [](const Lines& hypotheses, const References& references, const json& options) {
        return corpus_chrf(hypotheses, references, chrf_options(options));
      },
      [](const std::string& hypothesis, const Lines& references, const json& options) {
        return sentence_chrf(hypothesis, references, chrf_options(options));
      });
}

TEST(Contract25, TerIsSacrebleus) {
  compare(
      "ter",
      [](const Lines& hypotheses, const References& references, const json& options) {
        return corpus_ter(hypotheses, references, ter_options(options));
      },
      [](const std::string& hypothesis, const Lines& references, const json& options) {
        return sentence_ter(hypothesis, references, ter_options(options));
      });
}

Lines words_of(const std::string& text) {
  const std::vector<std::string_view> words = split_words(text);
  return {words.begin(), words.end()};
}

void compare_tokenizer(const std::string& name) {
  const std::string model = takes_pieces(name) ? kPiecesModel : "";
  const LineTokenizer tokenize = load_bleu_tokenizer(parse_bleu_tokenizer(name), model);
  for (const json& expected : fixture()["tokenized"]) {
    const auto line = expected["line"].get<std::string>();
    EXPECT_EQ(words_of(tokenize(line)), expected[name].get<Lines>()) << name << ": " << line;
  }
}

TEST(Contract25, TokenizersAreSacrebleus) {
  for (const char* name : {"13a", "intl", "char", "zh", "spm", "none"}) compare_tokenizer(name);
}

TEST(Contract25, MecabsWordsAreSacrebleus) {
  if (!has_mecab()) GTEST_SKIP() << "libmecab2 or mecab-ipadic-utf8 is not installed";
  compare_tokenizer("ja-mecab");
}

TEST(Contract25, TercomsWordsAreSacrebleus) {
  for (const json& expected : fixture()["tokenized"]) {
    const auto line = expected["line"].get<std::string>();
    for (const auto& [key, words] : expected.items()) {
      if (!key.starts_with("ter")) continue;
      json given = json::object();
      std::istringstream names(key.substr(3));
      for (std::string name; names >> name;) given[name] = true;
      EXPECT_EQ(words_of(tokenize_tercom(ter_options(given), line)), words.get<Lines>())
          << key << ": " << line;
    }
  }
}

/// The ranges of code points that become words of their own between letters.
template <typename Tokenize>
json separated(Tokenize tokenize) {
  json ranges = json::array();
  char32_t previous = 0;
  for (char32_t code_point = 0x20; code_point < 0x110000; ++code_point) {
    if (code_point == 0xD800) code_point = 0xE000;
    if (is_space(code_point)) continue;
    std::string text = "a";
    append_utf8(text, code_point);
    if (split_words(tokenize(text + "a")).size() < 2) continue;
    if (!ranges.empty() && previous + 1 == code_point) {
      ranges.back()[1] = static_cast<uint32_t>(code_point);
    } else {
      ranges.push_back({static_cast<uint32_t>(code_point), static_cast<uint32_t>(code_point)});
    }
    previous = code_point;
  }
  return ranges;
}

TEST(Contract25, TheSameCharactersAreWords) {
  EXPECT_EQ(separated(load_bleu_tokenizer(BleuTokenizer::kZh)), fixture()["separated by zh"]);
  EXPECT_EQ(separated([](const std::string& text) {
              return tokenize_tercom({.normalized = true, .asian_support = true}, text);
            }),
            fixture()["separated by ter"]);
}

std::filesystem::path shared_folder() {
  const char* given = std::getenv("ATTEND_SHARED");
  return std::filesystem::path(given != nullptr ? given : ATTEND_SOURCE_DIR "/../shared") / "data" /
         "sacrebleu";
}

Lines read_gz(const std::filesystem::path& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  EXPECT_NE(file, nullptr) << path;
  std::string text;
  char buffer[1 << 16];
  for (int size = 0; file != nullptr && (size = gzread(file, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(size));
  }
  gzclose(file);
  Lines lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Compares as many digits as the table has.
void expect_printed(double value, const std::string& expected, const std::string& what) {
  const size_t digits = expected.size() - expected.find('.') - 1;
  EXPECT_EQ(fmt::format("{:.{}f}", value, digits), expected) << what;
}

struct PublishedScores {
  std::string system, bleu, ter, chrf2, chrf_plus_plus;
};

std::vector<PublishedScores> published_scores(const std::filesystem::path& table) {
  std::vector<PublishedScores> scores;
  std::ifstream file(table);
  std::string row;
  std::getline(file, row);
  while (std::getline(file, row)) {
    std::istringstream fields(row);
    PublishedScores& of = scores.emplace_back();
    for (std::string* field : {&of.system, &of.bleu, &of.ter, &of.chrf2, &of.chrf_plus_plus}) {
      std::getline(fields, *field, '\t');
    }
  }
  return scores;
}

class Newstest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(folder / "expected.tsv")) {
      GTEST_SKIP() << folder << " with newstest2017 and its scores is not there";
    }
    references = {read_gz(folder / "ref.de.gz")};
  }
  Lines output_of(const std::string& system) const { return read_gz(folder / (system + ".de.gz")); }

  std::filesystem::path folder = shared_folder();
  References references;
};
using Contract25Newstest = Newstest;

TEST_F(Contract25Newstest, ScoresAreThePublishedOnes) {
  // The table's chrF scores are those of Popović's own program, which smooths.
  ChrfOptions chrf2, chrf_plus_plus;
  chrf2.eps_smoothing = chrf_plus_plus.eps_smoothing = true;
  chrf_plus_plus.word_order = 2;
  int systems = 0;
  for (const PublishedScores& published : published_scores(folder / "expected.tsv")) {
    ++systems;
    const Lines hypotheses = output_of(published.system);
    const auto& name = published.system;
    expect_printed(corpus_bleu(hypotheses, references).value, published.bleu, name + " BLEU");
    expect_printed(corpus_ter(hypotheses, references).value / 100, published.ter, name + " TER");
    if (published.chrf2.empty()) continue;
    expect_printed(corpus_chrf(hypotheses, references, chrf2).value, published.chrf2,
                   name + " chrF2");
    expect_printed(corpus_chrf(hypotheses, references, chrf_plus_plus).value,
                   published.chrf_plus_plus, name + " chrF++");
  }
  EXPECT_EQ(systems, 8);
}

// What `sacrebleu -w 6` (2.6.0) prints for two of the systems.
TEST_F(Contract25Newstest, DefaultsAreSacrebleus) {
  ChrfOptions chrf_plus_plus;
  chrf_plus_plus.word_order = 2;
  const Lines first = output_of("C-3MA.4959"), second = output_of("FBK.4870");
  EXPECT_EQ(corpus_chrf(first, references).format_value(6), "51.953280");
  EXPECT_EQ(corpus_chrf(second, references).format_value(6), "54.715188");
  EXPECT_EQ(corpus_chrf(first, references, chrf_plus_plus).format_value(6), "49.169752");
  EXPECT_EQ(corpus_chrf(second, references, chrf_plus_plus).format_value(6), "52.237990");
}

}  // namespace
}  // namespace attend
