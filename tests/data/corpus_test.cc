#include "attend/data/corpus.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/data/test_files.h"

namespace attend {
namespace {

ParallelCorpus load(const CorpusOptions& options) {
  return ParallelCorpus::load(options, small_tokenizer(), small_tokenizer());
}

std::vector<int32_t> source_of(const ParallelCorpus& corpus, int64_t pair) {
  std::vector<int32_t> source, target;
  corpus.store().read(corpus.store().pair(pair), source, target);
  return source;
}
std::vector<int32_t> target_of(const ParallelCorpus& corpus, int64_t pair) {
  std::vector<int32_t> source, target;
  corpus.store().read(corpus.store().pair(pair), source, target);
  return target;
}

/// Two files of these lines.
ParallelFiles files_of(const TestFolder& folder, const std::string& name,
                       const std::vector<std::string>& source,
                       const std::vector<std::string>& target) {
  return {.source = folder.write(name + ".src", joined(source)),
          .target = folder.write(name + ".trg.gz", gzip(joined(target)))};
}

TEST(ParallelCorpus, HoldsTheTokensOfEveryPair) {
  TestFolder folder;
  const auto source = made_up_lines(5000, 1), target = made_up_lines(5000, 2);
  const ParallelCorpus corpus = load({.corpora = {files_of(folder, "one", source, target)},
                                      .max_length = 0,
                                      .max_length_ratio = 0});
  ASSERT_EQ(corpus.pairs(), 5000);
  int64_t source_tokens = 0, target_tokens = 0;
  for (int64_t pair = 0; pair < corpus.pairs(); ++pair) {
    const std::vector<int32_t> expected = small_tokenizer().encode(source[pair]);
    ASSERT_EQ(source_of(corpus, pair), expected);
    const StoredPair stored = corpus.store().pair(pair);
    ASSERT_EQ(stored.pair, pair);
    ASSERT_EQ(stored.source_length, std::ssize(expected));
    ASSERT_EQ(target_of(corpus, pair), small_tokenizer().encode(target[pair]));
    source_tokens += stored.source_length;
    target_tokens += stored.target_length;
  }
  EXPECT_EQ(corpus.source_tokens(), source_tokens);
  EXPECT_EQ(corpus.target_tokens(), target_tokens);
  EXPECT_EQ(corpus.report().to_string(), "5000 pairs");
}

TEST(ParallelCorpus, DoesNotDependOnThreads) {
  TestFolder folder;
  const ParallelFiles files =
      files_of(folder, "one", made_up_lines(9000, 1), made_up_lines(9000, 2));
  const ParallelCorpus one = load({.corpora = {files}, .threads = 1});
  const ParallelCorpus three = load({.corpora = {files}, .threads = 3});
  EXPECT_EQ(one.fingerprint(), three.fingerprint());
  EXPECT_EQ(one.report(), three.report());
  const ParallelFiles swapped = {.source = files.target, .target = files.source};
  EXPECT_NE(one.fingerprint(), load({.corpora = {swapped}}).fingerprint());
}

TEST(ParallelCorpus, IsKnownByThePairsThatAreKept) {
  TestFolder folder;
  const auto load_lines = [&](const std::string& name, const std::vector<std::string>& lines) {
    return load({.corpora = {{.tsv = folder.write(name, joined(lines))}}}).fingerprint();
  };
  std::vector<std::string> lines;
  for (const std::string& line : made_up_lines(3000, 7)) lines.push_back(line + "\t" + line);
  const std::string whole = load_lines("whole.tsv", lines);
  EXPECT_TRUE(whole.starts_with("3-")) << whole;
  std::vector<std::string> others = lines;
  others.insert(others.begin() + 700, "\tempty");  // cuts the pairs at other places
  EXPECT_EQ(load_lines("empty.tsv", others), whole);
  others = lines;
  ASSERT_NE(others[1], others[2000]);
  std::swap(others[1], others[2000]);
  EXPECT_NE(load_lines("swapped.tsv", others), whole);
  others = lines;
  others.pop_back();
  EXPECT_NE(load_lines("shorter.tsv", others), whole);
}

TEST(ParallelCorpus, ASampleSaysWhatAllWillHold) {
  TestFolder folder;
  const ParallelFiles one =
      files_of(folder, "one", made_up_lines(50'000, 1), made_up_lines(50'000, 2));
  std::string tsv;
  for (const std::string& line : made_up_lines(30'000, 3)) tsv += line + "\t" + line + "\n";
  const ParallelFiles two = {.tsv = folder.write("two.tsv", tsv)};
  const ParallelFiles small = {.tsv = folder.write("small.tsv", "haus\tgarten\n")};
  const CorpusOptions all = {.corpora = {one, two, small}};
  CorpusOptions some = all;
  some.most_pairs = 5000;
  const ParallelCorpus whole = load(all), sample = load(some);
  EXPECT_EQ(sample.report().pairs_read, 10'001);
  EXPECT_EQ(sample.parts()[2].share_read, 1);
  const CorpusSummary estimate = sample.summary().extrapolated();
  const auto near = [](int64_t estimated, int64_t expected) {
    EXPECT_NEAR(static_cast<double>(estimated), static_cast<double>(expected),
                0.05 * static_cast<double>(expected));
  };
  near(estimate.pairs, whole.pairs());
  near(estimate.source_tokens, whole.source_tokens());
  near(estimate.target_tokens, whole.target_tokens());
  EXPECT_NEAR(static_cast<double>(estimate.report().length_ratio),
              static_cast<double>(whole.report().length_ratio), 600);
  EXPECT_EQ(estimate.parts[2].report.pairs_kept, 1);
}

TEST(ParallelCorpus, PutsCorporaEndToEnd) {
  TestFolder folder;
  ParallelFiles one = files_of(folder, "one", {"haus", "garten"}, {"haus", "two"});
  const ParallelFiles two = {.tsv = folder.write("two.tsv", "play\twith\n"), .weight = 2.5};
  const ParallelCorpus corpus = load({.corpora = {one, two}});
  ASSERT_EQ(corpus.parts().size(), 2U);
  EXPECT_EQ(corpus.parts()[0].begin, 0);
  EXPECT_EQ(corpus.parts()[0].end, 2);
  EXPECT_EQ(corpus.parts()[1].begin, 2);
  EXPECT_EQ(corpus.parts()[1].end, 3);
  EXPECT_EQ(corpus.parts()[1].weight, 2.5);
  EXPECT_EQ(corpus.parts()[1].name, two.tsv);
  EXPECT_EQ(target_of(corpus, 2), small_tokenizer().encode("with"));
}

TEST(Contract08, UnequalFilesAreRefused) {
  TestFolder folder;
  const ParallelFiles files =
      files_of(folder, "one", made_up_lines(3000, 1), made_up_lines(2999, 2));
  const std::string message = message_of([&] { load({.corpora = {files}}); });
  expect_contains(message, files.source + " has 3000");
  expect_contains(message, files.target + " has 2999");
}

TEST(Contract09, PairsLeftOutAreCountedByReason) {
  TestFolder folder;
  std::string tsv = "haus\tgarten\n";
  tsv += "\tgarten\n \t \nhaus\t\xC2\xA0\n";                    // 3 empty
  tsv += "two dogs. play with two dogs.\thaus\n";               // 1 too long
  tsv += std::string(100'000, 'x') + "\thaus\n";                // 1 too long without tokenizing
  tsv += "haus\tgarten haus garten\nhaus garten haus\thaus\n";  // 2 with a bad ratio
  tsv += "haus\xFF\tgarten\nhaus\t\xC0\x80\n";                  // 2 not UTF-8
  tsv += "no tab\na\tb\tc\n\n";                                 // 3 bad lines
  tsv += "die\tder\n";
  const ParallelCorpus corpus = load({.corpora = {{.tsv = folder.write("pairs.tsv", tsv)}},
                                      .skip_bad_lines = true,
                                      .max_length = 4,
                                      .max_length_ratio = 2});
  const CorpusReport expected = {.pairs_read = 11,
                                 .pairs_kept = 2,
                                 .empty = 3,
                                 .too_long = 2,
                                 .length_ratio = 2,
                                 .bad_utf8 = 2,
                                 .bad_lines = 3};
  const CorpusReport report = corpus.report();
  EXPECT_EQ(report, expected) << report.to_json();
  EXPECT_EQ(report.left_out(), 12);
  EXPECT_EQ(report.to_string(),
            "2 pairs; left out 12: 3 empty, 2 too long, 2 with a bad length ratio, 2 not UTF-8, 3 "
            "without exactly one tab");
  EXPECT_EQ(report.to_json()["length_ratio"], 2);
  EXPECT_EQ(report.to_json()["pairs_kept"], 2);
  EXPECT_EQ(source_of(corpus, 1), small_tokenizer().encode("die"));
}

TEST(Contract09, ALengthAtTheLimitIsKept) {
  TestFolder folder;
  const std::string line = "haus garten haus garten";
  ASSERT_EQ(small_tokenizer().encode(line).size(), 4U);
  const std::string path = folder.write("pairs.tsv", line + "\thaus garten\n");
  const auto kept = [&](int64_t length, double ratio) {
    try {
      return load({.corpora = {{.tsv = path}}, .max_length = length, .max_length_ratio = ratio})
          .pairs();
    } catch (const Error&) {
      return int64_t{0};
    }
  };
  EXPECT_EQ(kept(4, 2), 1);
  EXPECT_EQ(kept(3, 2), 0);
  EXPECT_EQ(kept(4, 1.9), 0);
  EXPECT_EQ(kept(0, 0), 1);
}

TEST(Contract09, NoPairLeftIsAnErrorWithTheReasons) {
  TestFolder folder;
  const std::string path = folder.write("pairs.tsv", "\ta\n\tb\n");
  const std::string message = message_of([&] { load({.corpora = {{.tsv = path}}}); });
  expect_contains(message, path);
  expect_contains(message, "2 empty");
  const std::string empty = folder.write("empty.tsv", "");
  expect_contains(message_of([&] { load({.corpora = {{.tsv = empty}}}); }), empty);
}

TEST(ParallelCorpus, RefusesBinaryFiles) {
  TestFolder folder;
  const std::string path = folder.write("pairs.tsv", std::string("a\tb\na\0\tb\n", 9));
  expect_contains(message_of([&] { load({.corpora = {{.tsv = path}}}); }), path + ", line 2");
}

TEST(ParallelCorpus, RefusesOptionsThatCannotBeMeant) {
  TestFolder folder;
  const std::string path = folder.write("pairs.tsv", "haus\tgarten\n");
  const auto refused = [&](const CorpusOptions& options) {
    EXPECT_THROW(load(options), UsageError);
  };
  refused({});
  refused({.corpora = {{.tsv = path, .weight = 0}}});
  refused({.corpora = {{.tsv = path, .weight = -1}}});
  refused({.corpora = {{.tsv = path, .weight = std::nan("")}}});
  refused({.corpora = {{.tsv = path}}, .max_length = -1});
  refused({.corpora = {{.tsv = path}}, .max_length_ratio = 0.5});
  refused({.corpora = {{.tsv = path}}, .threads = -1});
  refused({.corpora = {{.tsv = path}}, .most_pairs = -1});
  refused({.corpora = {{.tsv = path}}, .cache = folder.path("cache"), .most_pairs = 5});
}

}  // namespace
}  // namespace attend
