#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>

#include "tests/cli/process.h"

namespace attend {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

struct Texts {
  TemporaryFolder folder;
  std::string reference =
      folder.file("ref", "The cat sat on the mat.\nIt was a good day for all\n");
  std::string second = folder.file("ref2", "A cat sat on a mat.\nA good day it was for all\n");
  std::string output = "The cat sat on a mat.\nIt was a good day for us\n";
};

TEST(Evaluate, PerfectTextHasTheBestScores) {
  const Texts texts;
  const Finished finished = run({"evaluate", "--reference", texts.reference, "--metrics",
                                 "bleu,chrf,chrf++,ter", "--hypothesis", texts.reference});
  ASSERT_EQ(finished.status, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr(" = 100.0 100.0/100.0/100.0/100.0"));
  EXPECT_THAT(finished.out, HasSubstr("\nchrF2|"));
  EXPECT_THAT(finished.out, HasSubstr("\nchrF2++|"));
  EXPECT_THAT(finished.out, HasSubstr("\nTER|"));
  EXPECT_THAT(finished.out, testing::EndsWith(" = 0.0\n"));
}

TEST(Evaluate, OptionsReachTheSignatures) {
  const Texts texts;
  const Finished finished =
      run({"evaluate", "--reference", texts.reference, texts.second, "--metrics", "bleu",
           "--tokenize", "char", "--lowercase", "--smooth", "floor", "--smooth-value", "0.5"},
          texts.output);
  ASSERT_EQ(finished.status, 0) << finished.err;
  EXPECT_THAT(finished.out,
              StartsWith("BLEU|nrefs:2|case:lc|eff:no|tok:char|smooth:floor[0.50]|version:"));
}

TEST(Evaluate, WritesJson) {
  const Texts texts;
  const Finished finished =
      run({"evaluate", "--reference", texts.reference, "--json", "--confidence"}, texts.output);
  ASSERT_EQ(finished.status, 0) << finished.err;
  const auto scores = nlohmann::json::parse(finished.out);
  ASSERT_EQ(scores.size(), 2U);
  EXPECT_EQ(scores[0].at("name"), "BLEU");
  EXPECT_GT(scores[0].at("score").get<double>(), 30.0);
  EXPECT_EQ(scores[0].at("tok"), "13a");
  EXPECT_GE(scores[0].at("confidence").get<double>(), 0.0);
  EXPECT_EQ(scores[1].at("name"), "chrF2");
}

TEST(Evaluate, ScoresEachSentence) {
  const Texts texts;
  const std::vector<std::string> arguments = {"evaluate", "--reference", texts.reference,
                                              "--sentence"};
  const Finished finished = run(arguments, "The cat sat on the mat.\nno\n");
  ASSERT_EQ(finished.status, 0) << finished.err;
  EXPECT_THAT(finished.out, StartsWith("100.0\t100.0\n"));
  EXPECT_EQ(std::count(finished.out.begin(), finished.out.end(), '\n'), 2);
  EXPECT_THAT(finished.err, HasSubstr("BLEU|nrefs:1|case:mixed|eff:yes|"));
}

/// Four systems' outputs and their reference.
struct Systems {
  TemporaryFolder folder;
  std::string reference, base, better, same;

  Systems() {
    std::string right, wrong, half;
    for (int i = 0; i < 60; ++i) {
      const std::string line = "Sentence " + std::to_string(i * i) + " of this small text is here";
      right += line + ".\n";
      wrong += (i % 2 ? line : "A sentence with nothing in common") + ".\n";
      half += (i % 4 ? line : "A sentence with nothing in common") + ".\n";
    }
    reference = folder.file("ref", right);
    base = folder.file("base", wrong);
    better = folder.file("better", half);
    same = folder.file("same", wrong);
  }
};

TEST(Evaluate, ComparesSystemsInATable) {
  const Systems systems;
  for (const auto& [flag, test] :
       {std::pair("--paired-bootstrap", "bs:1000"), {"--paired-ar", "ar:10000"}}) {
    const Finished finished =
        run({"evaluate", "--reference", systems.reference, "--hypothesis", systems.base,
             systems.better, systems.same, "--metrics", "bleu,ter", flag});
    ASSERT_EQ(finished.status, 0) << finished.err;
    EXPECT_THAT(finished.out, HasSubstr("\nBaseline: " + systems.base + "  "));
    EXPECT_THAT(finished.out, HasSubstr("\n" + systems.better + "  "));
    EXPECT_THAT(finished.out, HasSubstr("p = 0.00"));
    EXPECT_THAT(finished.out, HasSubstr("\nBLEU|nrefs:1|" + std::string(test) +
                                        "|seed:12345|case:mixed|eff:no|tok:13a|"));
    EXPECT_THAT(finished.out, HasSubstr("\nTER|nrefs:1|" + std::string(test) + "|seed:12345|"));
  }
  const Finished plain = run({"evaluate", "--reference", systems.reference, "--hypothesis",
                              systems.base, systems.better, "--metrics", "bleu"});
  EXPECT_THAT(plain.out, StartsWith("System"));
  EXPECT_THAT(plain.out, testing::Not(HasSubstr("p = ")));
}

TEST(Evaluate, TablesAreJsonToo) {
  const Systems systems;
  const Finished finished =
      run({"evaluate", "--reference", systems.reference, "--hypothesis", systems.base,
           systems.better, "--paired-bootstrap", "--resamples", "50", "--seed", "3", "--json"});
  ASSERT_EQ(finished.status, 0) << finished.err;
  const auto table = nlohmann::json::parse(finished.out);
  ASSERT_EQ(table.size(), 2U);
  EXPECT_EQ(table[0]["system"], systems.base);
  EXPECT_TRUE(table[0]["BLEU"]["p_value"].is_null());
  EXPECT_LT(table[1]["BLEU"]["p_value"].get<double>(), 0.05);
  EXPECT_GT(table[1]["chrF2"]["mean"].get<double>(), table[0]["chrF2"]["mean"].get<double>());
  EXPECT_GT(table[1]["chrF2"]["ci"].get<double>(), 0);
  EXPECT_THAT(table[1]["BLEU"]["signature"].get<std::string>(), HasSubstr("|bs:50|seed:3|"));
}

TEST(Evaluate, RefusesComparisonsThatAreNone) {
  const Systems systems;
  const auto refusal = [&systems](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"evaluate", "--reference", systems.reference});
    const Finished finished = run(arguments);
    EXPECT_EQ(finished.status, 2);
    return finished.err;
  };
  EXPECT_THAT(refusal({"--hypothesis", systems.base, "--paired-ar"}),
              HasSubstr("two files or more"));
  EXPECT_THAT(refusal({"--hypothesis", systems.base, systems.base}), HasSubstr("given twice"));
  const std::string link = systems.base + ".link";
  std::filesystem::create_symlink(systems.base, link);
  EXPECT_THAT(refusal({"--hypothesis", systems.base, link, "--paired-ar"}),
              HasSubstr(link + " is given twice, as " + systems.base + " too"));
  EXPECT_THAT(refusal({"--metrics", "bleu,ter,bleu"}), HasSubstr("metrics: bleu is given twice"));
  EXPECT_THAT(refusal({"--metrics", "chrf,chrf++", "--chrf-word-order", "0"}),
              HasSubstr("chrf_word_order: found 0"));
  EXPECT_THAT(refusal({"--hypothesis", systems.base, systems.same, "--sentence"}),
              HasSubstr("scores one system"));
  EXPECT_THAT(
      refusal({"--hypothesis", systems.base, systems.same, "--paired-ar", "--paired-bootstrap"}),
      HasSubstr("expected one of them"));
  EXPECT_THAT(refusal({"--ter-asian-support"}), HasSubstr("changes nothing without"));
  EXPECT_THAT(refusal({"--tokenize", "flores200", "--hypothesis", systems.base}),
              HasSubstr("(--tokenizer-model FILE)"));
  EXPECT_THAT(refusal({"--smooth-value", "1"}), HasSubstr("takes no value"));
}

TEST(Evaluate, OptionsOfAllMetricsReachThem) {
  const Texts texts;
  const Finished finished = run({"evaluate",
                                 "--reference",
                                 texts.reference,
                                 "--metrics",
                                 "bleu,chrf,chrf++,ter",
                                 "--tokenize",
                                 "spm",
                                 "--tokenizer-model",
                                 ATTEND_SOURCE_DIR "/tests/metrics/pieces.model",
                                 "--max-ngram-order",
                                 "3",
                                 "--effective-order",
                                 "--chrf-char-order",
                                 "5",
                                 "--chrf-word-order",
                                 "1",
                                 "--chrf-beta",
                                 "3",
                                 "--chrf-whitespace",
                                 "--chrf-eps-smoothing",
                                 "--ter-normalized",
                                 "--ter-no-punct",
                                 "--ter-asian-support",
                                 "--ter-case-sensitive"},
                                texts.output);
  ASSERT_EQ(finished.status, 0) << finished.err;
  EXPECT_THAT(finished.out,
              HasSubstr("BLEU|nrefs:1|case:mixed|eff:yes|tok:flores101|smooth:exp|order:3|"));
  EXPECT_THAT(finished.out, HasSubstr("chrF3|nrefs:1|case:mixed|eff:no|nc:5|nw:0|space:yes|"));
  EXPECT_THAT(finished.out, HasSubstr("chrF3+|nrefs:1|case:mixed|eff:no|nc:5|nw:1|space:yes|"));
  EXPECT_THAT(finished.out,
              HasSubstr("TER|nrefs:1|case:mixed|tok:tercom|norm:yes|punct:no|asian:yes|"));
}

TEST(Evaluate, AReferenceMayBeMissing) {
  const Texts texts;
  const std::string gaps = texts.folder.file("gaps", "\nIt was a good day for us\n");
  const std::vector<std::string> arguments = {"evaluate", "--reference", texts.reference,
                                              gaps,       "--metrics",   "bleu"};
  const Finished empty = run(arguments, texts.output);
  EXPECT_THAT(empty.out, StartsWith("BLEU|nrefs:2|"));
  auto with_missing = arguments;
  with_missing.emplace_back("--missing-references");
  const Finished missing = run(with_missing, texts.output);
  EXPECT_THAT(missing.out, StartsWith("BLEU|nrefs:var|"));
  const Finished none =
      run({"evaluate", "--reference", gaps, "--missing-references"}, texts.output);
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(
      none.err,
      HasSubstr("missing_references: line 1 has no reference, as it is empty in " + gaps + ";"));
}

TEST(Evaluate, WarnsOfTokenizedText) {
  const Texts texts;
  const std::string tokenized = "The cat sat on the mat .\nIt was a go@@ od day for all .\n";
  const std::vector<std::string> arguments = {"evaluate", "--reference", texts.reference};
  const Finished finished = run(arguments, tokenized);
  ASSERT_EQ(finished.status, 0);
  EXPECT_THAT(finished.err, HasSubstr("standard input: 2 of 2 lines end in \" .\""));
  EXPECT_THAT(finished.err, HasSubstr("1 of 2 lines have \"@@\""));
  for (const char* flag : {"--force", "--quiet"}) {
    auto silent = arguments;
    silent.emplace_back(flag);
    EXPECT_THAT(run(silent, tokenized).err, testing::Not(HasSubstr("lines"))) << flag;
  }
}

TEST(Evaluate, FilesAreReadAsEverywhere) {
  const Texts texts;
  const Finished plain = run({"evaluate", "--reference", texts.reference}, texts.output);
  const Finished windows = run({"evaluate", "--reference", texts.reference},
                               "\xEF\xBB\xBFThe cat sat on a mat. \r\nIt was a good day for us\r");
  EXPECT_EQ(windows.out, plain.out);
  const Finished short_text = run({"evaluate", "--reference", texts.reference}, "one line\n");
  EXPECT_EQ(short_text.status, 1);
  EXPECT_THAT(short_text.err, HasSubstr("standard input has 1 line, but the reference"));
  const std::string nothing = texts.folder.file("nothing", "");
  EXPECT_EQ(run({"evaluate", "--reference", nothing}, "").status, 1);
}

TEST(Contract25, TheCommandPrintsWhatSacreBleuDoes) {
  const char* const shared = std::getenv("ATTEND_SHARED");
  const std::string data =
      (shared ? std::string(shared) : ATTEND_SOURCE_DIR "/../shared") + "/data/sacrebleu/";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << data << " is not there";
  const Finished finished =
      run({"evaluate", "--reference", data + "ref.de.gz", "--hypothesis", data + "C-3MA.4959.de.gz",
           "--metrics", "bleu,chrf", "--width", "4"});
  ASSERT_EQ(finished.status, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr(" = 22.67"));
  EXPECT_THAT(finished.out, HasSubstr(" = 51.9533\n"));
}

}  // namespace
}  // namespace attend
