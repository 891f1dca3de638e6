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
  std::vector<int32_t> tokens;
  corpus.append_source(pair, tokens);
  return tokens;
}
std::vector<int32_t> target_of(const ParallelCorpus& corpus, int64_t pair) {
  std::vector<int32_t> tokens;
  corpus.append_target(pair, tokens);
  return tokens;
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
    ASSERT_EQ(corpus.source_length(pair), std::ssize(expected));
    ASSERT_EQ(target_of(corpus, pair), small_tokenizer().encode(target[pair]));
    source_tokens += corpus.source_length(pair);
    target_tokens += corpus.target_length(pair);
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
}

TEST(TokenStore, KeepsIdsOfEveryWidthAcrossChunks) {
  for (const int64_t vocabulary : {int64_t{65'536}, int64_t{1'000'000}}) {
    TokenStore store(vocabulary);
    RandomGenerator random(31);
    std::vector<std::vector<int32_t>> expected;
    for (int i = 0; i < 40; ++i) {
      // Some are larger than a chunk of 16 MiB, most leave a rest in one.
      std::vector<int32_t> tokens(i == 7 ? 20'000'000 : random.uniform_index(1'000'000));
      for (std::size_t k = 0; k < tokens.size(); k += 997) {
        tokens[k] = static_cast<int32_t>(random.uniform_index(vocabulary));
      }
      if (!tokens.empty()) tokens.back() = static_cast<int32_t>(vocabulary - 1);
      expected.push_back(std::move(tokens));
      if (i % 2 == 1) store.append(expected[i - 1], expected[i]);
    }
    ASSERT_EQ(store.size(), 20U);
    for (int64_t pair = 0; pair < 20; ++pair) {
      std::vector<int32_t> source, target;
      store.append_source(pair, source);
      store.append_target(pair, target);
      ASSERT_TRUE(source == expected[2 * pair]);
      ASSERT_TRUE(target == expected[2 * pair + 1]);
      ASSERT_EQ(store.source_length(pair), std::ssize(source));
    }
  }
}

}  // namespace
}  // namespace attend
