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

#include "attend/metrics/bleu.h"
#include "attend/metrics/chrf.h"
#include "attend/metrics/ter.h"
#include "attend/metrics/tokenizers.h"

namespace attend {
namespace {

using nlohmann::json;

/// What sacreBLEU answers; tests/reference/metrics_fixture.py made it.
const json& fixture() {
  static const json parsed = [] {
    std::ifstream file(std::string(ATTEND_SOURCE_DIR) + "/tests/metrics/sacrebleu_fixture.json");
    return json::parse(file);
  }();
  return parsed;
}

BleuOptions bleu_options(const json& given) {
  BleuOptions options;
  options.tokenizer = parse_bleu_tokenizer(given.value("tokenize", "13a"));
  options.lowercase = given.value("lowercase", false);
  options.smoothing = parse_bleu_smoothing(given.value("smooth_method", "exp"));
  if (given.contains("smooth_value")) options.smooth_value = given["smooth_value"].get<double>();
  // sacreBLEU's programming interface has no default of its own for sentences.
  options.effective_order = given.value("effective_order", false);
  return options;
}

ChrfOptions chrf_options(const json& given) {
  ChrfOptions options;
  options.char_order = given.value("char_order", options.char_order);
  options.word_order = given.value("word_order", options.word_order);
  options.beta = given.value("beta", options.beta);
  options.lowercase = given.value("lowercase", false);
  options.whitespace = given.value("whitespace", false);
  options.eps_smoothing = given.value("eps_smoothing", false);
  return options;
}

TerOptions ter_options(const json& given) {
  TerOptions options;
  options.case_sensitive = given.value("case_sensitive", false);
  options.normalized = given.value("normalized", false);
  options.no_punct = given.value("no_punct", false);
  return options;
}

/// Without attend's version, which sacreBLEU cannot print.
std::string line_of(Score score) {
  score.signature.resize(score.signature.rfind("|version:"));
  return score.format(8);
}

/// Scores all cases of one metric, as a corpus and line by line.
template <typename Corpus, typename Sentence>
void compare(const std::string& metric, Corpus corpus, Sentence sentence) {
  int cases = 0;
  for (const json& expected : fixture()["cases"]) {
    if (expected["metric"] != metric) continue;
    ++cases;
    const json& text = fixture()["corpora"][expected["corpus"].get<std::string>()];
    const auto hypotheses = text["hypotheses"].get<Lines>();
    auto references = text["references"].get<References>();
    references.resize(expected["references"].get<size_t>());
    SCOPED_TRACE(expected["corpus"].dump() + " " + expected["options"].dump());
    EXPECT_EQ(line_of(corpus(hypotheses, references, expected["options"])), expected["line"]);
    for (size_t i = 0; i < hypotheses.size(); ++i) {
      Lines translations;
      for (const Lines& set : references) translations.push_back(set[i]);
      EXPECT_NEAR(sentence(hypotheses[i], translations, expected["options"]).value,
                  expected["sentences"][i].get<double>(), 1e-6)
          << "line " << i + 1 << ": " << hypotheses[i];
    }
  }
  EXPECT_GT(cases, 50);
}

TEST(Contract25, BleuIsSacrebleus) {
  compare(
      "bleu",
      [](const Lines& hypotheses, const References& references, const json& options) {
        return corpus_bleu(hypotheses, references, bleu_options(options));
      },
      [](const std::string& hypothesis, const Lines& references, const json& options) {
        return sentence_bleu(hypothesis, references, bleu_options(options));
      });
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

TEST(Contract25, TokenizersAreSacrebleus) {
  for (const json& expected : fixture()["tokenized"]) {
    const auto line = expected["line"].get<std::string>();
    SCOPED_TRACE(line);
    for (const char* name : {"13a", "intl", "char", "none"}) {
      EXPECT_EQ(words_of(tokenize(parse_bleu_tokenizer(name), line)), expected[name].get<Lines>())
          << name;
    }
    for (const char* name : {"", "normalized", "no_punct", "case_sensitive"}) {
      const TerOptions options = ter_options({{*name == 0 ? "none" : name, true}});
      const std::string key = *name == 0 ? "ter" : std::string("ter ") + name;
      EXPECT_EQ(words_of(tokenize_tercom(options, line)), expected[key].get<Lines>()) << key;
    }
  }
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
