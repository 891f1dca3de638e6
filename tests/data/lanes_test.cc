#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/data/made_up_corpus.h"

namespace attend {
namespace {

int64_t cost(const Lane& lane) {
  return std::ssize(lane.source.tokens) + std::ssize(lane.target_output);
}

TEST(Lanes, HoldWhatTheModelReads) {
  const std::vector<int64_t> pairs = {3, 17};
  const std::vector<Lane> lanes = make_lanes(thousand(), stored(thousand(), pairs), 1, 1024);
  ASSERT_EQ(lanes.size(), 1U);
  std::vector<int32_t> source, input, output;
  std::vector<int64_t> source_offsets = {0}, target_offsets = {0};
  for (const int64_t pair : pairs) {
    std::vector<int32_t> target;
    thousand().store().read(thousand().store().pair(pair), source, target);
    source.push_back(2);
    source_offsets.push_back(std::ssize(source));
    input.push_back(1);
    input.insert(input.end(), target.begin(), target.end());
    output.insert(output.end(), target.begin(), target.end());
    output.push_back(2);
    target_offsets.push_back(std::ssize(output));
  }
  EXPECT_EQ(lanes[0].source.tokens, source);
  EXPECT_EQ(lanes[0].source.offsets, source_offsets);
  EXPECT_EQ(lanes[0].source.count(), 2);
  EXPECT_EQ(lanes[0].target_input.tokens, input);
  EXPECT_EQ(lanes[0].target_input.offsets, target_offsets);
  EXPECT_EQ(lanes[0].target_output, output);
  EXPECT_EQ(lanes[0].pair_ids, pairs);
}

TEST(Lanes, AreNearlyEqualAndInOrder) {
  std::vector<int64_t> pairs(300);
  std::iota(pairs.begin(), pairs.end(), 100);
  for (const int64_t count : {1, 2, 3, 4, 7, 64}) {
    const std::vector<Lane> lanes =
        make_lanes(thousand(), stored(thousand(), pairs), count, 1'000'000);
    ASSERT_EQ(std::ssize(lanes), count);
    std::vector<int64_t> seen;
    int64_t total = 0;
    for (const Lane& lane : lanes) {
      seen.insert(seen.end(), lane.pair_ids.begin(), lane.pair_ids.end());
      total += cost(lane);
    }
    EXPECT_EQ(seen, pairs);
    constexpr int64_t kLongestPair = 80;
    for (const Lane& lane : lanes) EXPECT_LE(std::abs(cost(lane) - total / count), kLongestPair);
  }
}

TEST(Lanes, AreMoreWhereTokensAreManyAndFewerWherePairsAreFew) {
  std::vector<int64_t> pairs(300);
  std::iota(pairs.begin(), pairs.end(), 0);
  const std::vector<Lane> whole = make_lanes(thousand(), stored(thousand(), pairs), 1, 1'000'000);
  const auto longer_side = [](const Lane& lane) {
    return std::max(std::ssize(lane.source.tokens), std::ssize(lane.target_output));
  };
  const std::vector<Lane> many = make_lanes(thousand(), stored(thousand(), pairs), 4, 100);
  EXPECT_GE(std::ssize(many), (longer_side(whole[0]) + 99) / 100);
  EXPECT_LE(std::ssize(many), longer_side(whole[0]) / 50);
  EXPECT_EQ(std::ssize(many) % 4, 0);
  for (const Lane& lane : many) {
    EXPECT_TRUE(longer_side(lane) <= 100 || lane.pair_ids.size() == 1) << longer_side(lane);
  }
  const std::vector<int64_t> few = {1, 2, 3};
  const std::vector<Lane> lanes = make_lanes(thousand(), stored(thousand(), few), 8, 1024);
  ASSERT_EQ(lanes.size(), 3U);
  for (const Lane& lane : lanes) EXPECT_EQ(lane.pair_ids.size(), 1U);
  EXPECT_TRUE(make_lanes(thousand(), {}, 4, 1024).empty());
}

TEST(Lanes, NoneIsEmptyHoweverUnequalPairsAre) {
  TestFolder folder;
  std::string longer = "haus";
  for (int i = 0; i < 200; ++i) longer += " haus";
  const std::string tsv = "haus\thaus\n" + longer + "\t" + longer + "\nhaus\thaus\nhaus\thaus\n";
  const ParallelCorpus corpus = ParallelCorpus::load(
      {.corpora = {{.tsv = folder.write("pairs.tsv", tsv)}}}, small_tokenizer(), small_tokenizer());
  std::vector<int64_t> pairs = {0, 1, 2, 3};
  do {
    for (const int64_t count : {2, 3, 4}) {
      const std::vector<Lane> lanes = make_lanes(corpus, stored(corpus, pairs), count, 1'000'000);
      ASSERT_EQ(std::ssize(lanes), count);
      for (const Lane& lane : lanes) ASSERT_FALSE(lane.pair_ids.empty());
    }
  } while (std::next_permutation(pairs.begin(), pairs.end()));
}

}  // namespace
}  // namespace attend
