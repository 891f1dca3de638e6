#include "attend/data/batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <numeric>
#include <thread>

#include "attend/base/profile.h"
#include "attend/data/batch_plan.h"
#include "tests/data/made_up_corpus.h"

namespace attend {
namespace {

int64_t target_length(const ParallelCorpus& corpus, int64_t pair) {
  return corpus.store().pair(pair).target_length;
}

constexpr BatchOptions kSmall = {
    .batch_tokens = 200, .lanes = 4, .lane_tokens = 1024, .window_batches = 10, .seed = 5};

bool operator==(const Lane& a, const Lane& b) {
  return a.source.tokens == b.source.tokens && a.source.offsets == b.source.offsets &&
         a.target_input.tokens == b.target_input.tokens &&
         a.target_input.offsets == b.target_input.offsets && a.target_output == b.target_output &&
         a.pair_ids == b.pair_ids;
}
bool same(const Batch& a, const Batch& b) {
  return std::equal(a.lanes.begin(), a.lanes.end(), b.lanes.begin(), b.lanes.end(),
                    [](const Lane& x, const Lane& y) { return x == y; }) &&
         a.source_tokens == b.source_tokens && a.target_tokens == b.target_tokens &&
         a.pairs == b.pairs && a.position == b.position && a.last_of_epoch == b.last_of_epoch;
}

std::vector<int64_t> pairs_of(const Batch& batch) {
  std::vector<int64_t> pairs;
  for (const Lane& lane : batch.lanes) {
    pairs.insert(pairs.end(), lane.pair_ids.begin(), lane.pair_ids.end());
  }
  return pairs;
}

std::vector<Batch> epoch_of(BatchStream& stream) {
  std::vector<Batch> batches;
  do {
    batches.push_back(stream.next());
  } while (!batches.back().last_of_epoch);
  return batches;
}

TEST(BatchStream, AnEpochIsEveryPairExactlyOnce) {
  BatchStream stream(thousand(), kSmall);
  std::vector<std::vector<int64_t>> orders;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<int64_t> seen;
    for (const Batch& batch : epoch_of(stream)) {
      EXPECT_EQ(batch.position.epoch, epoch);
      const std::vector<int64_t> pairs = pairs_of(batch);
      EXPECT_EQ(std::ssize(pairs), batch.pairs);
      seen.insert(seen.end(), pairs.begin(), pairs.end());
    }
    orders.push_back(seen);
    std::sort(seen.begin(), seen.end());
    ASSERT_EQ(std::ssize(seen), stream.pairs_in_epoch(epoch));
    for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(seen[i], i);
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_NE(orders[1], orders[2]);
}

TEST(BatchStream, BatchesKeepToTheBudgetAndFillIt) {
  BatchStream stream(thousand(), kSmall);
  int64_t tokens = 0, batches = 0;
  for (const Batch& batch : epoch_of(stream)) {
    int64_t source = 0, target = 0;
    for (const Lane& lane : batch.lanes) {
      source += std::ssize(lane.source.tokens);
      target += std::ssize(lane.target_output);
    }
    EXPECT_EQ(batch.source_tokens, source);
    EXPECT_EQ(batch.target_tokens, target);
    EXPECT_LE(std::max(source, target), kSmall.batch_tokens);
    tokens += std::max(source, target);
    ++batches;
  }
  EXPECT_GT(4 * tokens, 3 * batches * kSmall.batch_tokens);
}

TEST(BatchStream, NoBatchIsARemainder) {
  BatchStream stream(thousand(), kSmall);
  for (const Batch& batch : epoch_of(stream)) {
    EXPECT_GT(std::max(batch.source_tokens, batch.target_tokens), kSmall.batch_tokens * 6 / 10);
  }
}

TEST(BatchStream, APairBeyondTheBudgetIsABatch) {
  BatchOptions options = kSmall;
  options.batch_tokens = 1;
  BatchStream stream(thousand(), options);
  const std::vector<Batch> batches = epoch_of(stream);
  EXPECT_EQ(batches.size(), 1000U);
  for (const Batch& batch : batches) EXPECT_EQ(batch.lanes.size(), 1U);
}

TEST(BatchStream, ABatchHoldsPairsOfAllLengths) {
  BatchStream stream(thousand(), kSmall);
  double difference = 0, batches = 0;
  for (const Batch& batch : epoch_of(stream)) {
    int64_t shortest = INT64_MAX, longest = 0;
    for (const int64_t pair : pairs_of(batch)) {
      shortest = std::min(shortest, target_length(thousand(), pair));
      longest = std::max(longest, target_length(thousand(), pair));
    }
    difference += static_cast<double>(longest - shortest);
    ++batches;
  }
  EXPECT_GT(difference / batches, 8);  // sorted by length, it would be less than 3
}

TEST(BatchStream, IsAFunctionOfTheSeed) {
  BatchStream one(thousand(), kSmall), two(thousand(), kSmall);
  BatchOptions other = kSmall;
  other.seed = 6;
  BatchStream three(thousand(), other);
  int different = 0;
  for (int i = 0; i < 50; ++i) {
    const Batch batch = one.next();
    EXPECT_TRUE(same(batch, two.next()));
    different += same(batch, three.next()) ? 0 : 1;
  }
  EXPECT_GT(different, 45);
}

TEST(Contract12, AStreamGoesOnFromAnyPosition) {
  const ParallelCorpus corpus = corpus_of({{150, 1.0}, {60, 1.7}, {9, 0.1}});
  BatchStream whole(corpus, kSmall);
  std::vector<Batch> batches;
  std::vector<DataPosition> positions;
  for (int i = 0; i < 70; ++i) {
    positions.push_back(whole.position());
    batches.push_back(whole.next());
    EXPECT_EQ(positions.back(), batches.back().position);
  }
  EXPECT_GT(positions.back().epoch, 2);
  for (std::size_t start = 0; start < batches.size(); ++start) {
    BatchStream resumed(corpus, kSmall, positions[start]);
    EXPECT_EQ(resumed.position(), positions[start]);
    for (std::size_t i = start; i < std::min(start + 12, batches.size()); ++i) {
      ASSERT_TRUE(same(resumed.next(), batches[i])) << start << " " << i;
    }
  }
}

PairDropout dropout_of(double probability) {
  static const auto merges = std::make_shared<const BpeDropout>(small_tokenizer(), "dropout");
  return {merges, merges, probability, probability, 256};
}

TEST(BatchStream, DropoutSegmentsAnewInEachEpoch) {
  BatchStream plain(thousand(), kSmall), dropped(thousand(), kSmall, {}, dropout_of(0.3));
  BatchStream again(thousand(), kSmall, {}, dropout_of(0.3));
  std::map<int64_t, std::vector<int32_t>> first;
  int64_t plain_tokens = 0;
  for (const Batch& batch : epoch_of(plain)) plain_tokens += batch.target_tokens;
  int64_t tokens = 0, differing = 0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    const std::vector<Batch> batches = epoch_of(dropped), same_batches = epoch_of(again);
    ASSERT_EQ(batches.size(), same_batches.size());
    std::vector<int64_t> seen;
    for (std::size_t i = 0; i < batches.size(); ++i) {
      const Batch& batch = batches[i];
      ASSERT_TRUE(same(batch, same_batches[i]));
      EXPECT_LE(std::max(batch.source_tokens, batch.target_tokens), kSmall.batch_tokens);
      for (const Lane& lane : batch.lanes) {
        for (std::size_t at = 0; at < lane.pair_ids.size(); ++at) {
          const int64_t pair = lane.pair_ids[at];
          seen.push_back(pair);
          const std::vector<int32_t> target(
              lane.target_output.begin() + lane.target_input.offsets[at],
              lane.target_output.begin() + lane.target_input.offsets[at + 1] - 1);
          std::vector<int32_t> source, whole;
          thousand().store().read(thousand().store().pair(pair), source, whole);
          ASSERT_EQ(small_tokenizer().decode(target), small_tokenizer().decode(whole));
          const auto [place, is_first] = first.emplace(pair, target);
          if (!is_first && place->second != target) ++differing;
        }
      }
      if (epoch == 0) tokens += batch.target_tokens;
    }
    std::sort(seen.begin(), seen.end());
    std::vector<int64_t> all(thousand().pairs());
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(seen, all);
  }
  EXPECT_GT(tokens, plain_tokens);
  EXPECT_GT(differing, 700);
}

TEST(BatchStream, DropoutGoesOnAnywhereWithTheSameBatches) {
  BatchStream whole(thousand(), kSmall, {}, dropout_of(0.2));
  std::vector<Batch> batches;
  std::vector<DataPosition> positions;
  while (batches.empty() || batches.back().position.epoch < 2) {
    positions.push_back(whole.position());
    batches.push_back(whole.next());
  }
  for (std::size_t start = 0; start < batches.size(); start += 37) {
    BatchStream resumed(thousand(), kSmall, positions[start], dropout_of(0.2));
    for (std::size_t i = start; i < std::min(start + 25, batches.size()); ++i) {
      ASSERT_TRUE(same(resumed.next(), batches[i])) << start << " " << i;
    }
  }
}

TEST(BatchStream, APairThatComesTwiceInAnEpochIsSegmentedTwice) {
  const ParallelCorpus corpus = corpus_of({{100, 2.0}});
  BatchStream stream(corpus, kSmall, {}, dropout_of(0.3));
  std::map<int64_t, std::vector<std::vector<int32_t>>> sources;
  for (const Batch& batch : epoch_of(stream)) {
    for (const Lane& lane : batch.lanes) {
      for (std::size_t at = 0; at < lane.pair_ids.size(); ++at) {
        sources[lane.pair_ids[at]].emplace_back(
            lane.source.tokens.begin() + lane.source.offsets[at],
            lane.source.tokens.begin() + lane.source.offsets[at + 1]);
      }
    }
  }
  const auto differing = std::count_if(sources.begin(), sources.end(), [](const auto& entry) {
    EXPECT_EQ(entry.second.size(), 2U);
    return entry.second[0] != entry.second[1];
  });
  EXPECT_GT(differing, 70);
}

TEST(BatchStream, RefusesAPositionThatTheDataDoesNotHave) {
  for (const DataPosition& position :
       {DataPosition{0, 1000, 0}, DataPosition{0, 0, 1000}, DataPosition{-1, 0, 0},
        DataPosition{0, -1, 0}, DataPosition{3, 0, -1}}) {
    EXPECT_THROW(BatchStream(thousand(), kSmall, position), Error);
  }
}

TEST(BatchStream, RefusesOptionsThatCannotBeMeant) {
  for (int64_t BatchOptions::*field : {&BatchOptions::batch_tokens, &BatchOptions::lanes,
                                       &BatchOptions::lane_tokens, &BatchOptions::window_batches}) {
    for (const int64_t value : {int64_t{0}, int64_t{-1}, INT64_MAX}) {
      BatchOptions options = kSmall;
      options.*field = value;
      EXPECT_THROW(BatchStream(thousand(), options), UsageError);
      EXPECT_THROW(validation_batches(thousand(), options), UsageError);
    }
  }
}

TEST(Weights, GiveEachCorpusItsShareExactly) {
  const ParallelCorpus corpus = corpus_of({{70, 1.0}, {30, 2.0}, {50, 0.3}, {13, 1.37}});
  BatchStream stream(corpus, kSmall);
  std::map<int64_t, int64_t> seen;
  constexpr int64_t kEpochs = 20;
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    int64_t pairs = 0;
    for (const Batch& batch : epoch_of(stream)) {
      for (const int64_t pair : pairs_of(batch)) ++seen[pair];
      pairs += batch.pairs;
    }
    EXPECT_EQ(pairs, stream.pairs_in_epoch(epoch));
    for (const CorpusPart& part : corpus.parts()) {
      int64_t least = INT64_MAX, most = 0, total = 0;
      for (int64_t pair = part.begin; pair < part.end; ++pair) {
        least = std::min(least, seen[pair]);
        most = std::max(most, seen[pair]);
        total += seen[pair];
      }
      ASSERT_LE(most - least, 1) << "epoch " << epoch;
      const double share = part.weight * static_cast<double>((part.end - part.begin) * (epoch + 1));
      ASSERT_NEAR(static_cast<double>(total), share, 1.0);
    }
  }
}

TEST(Weights, PassesThatEpochsCutAreShuffledEachInItsOwnWay) {
  const std::vector<CorpusPart> parts = {{.weight = 0.5, .begin = 100, .end = 1100}};
  const auto drawn = [&](int64_t epoch, uint64_t seed) {
    const EpochOrder order(parts, seed, epoch);
    std::vector<int64_t> pairs;
    for (int64_t i = 0; i < order.size(); ++i) pairs.push_back(order[i]);
    std::sort(pairs.begin(), pairs.end());
    return pairs;
  };
  const auto in_common = [](const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
    std::vector<int64_t> both;
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
    return std::ssize(both);
  };
  ASSERT_EQ(drawn(0, 1).size(), 500U);
  EXPECT_EQ(in_common(drawn(0, 1), drawn(1, 1)), 0);
  for (const auto& [epoch, seed] : {std::pair(2, 1), std::pair(0, 2)}) {
    EXPECT_NEAR(static_cast<double>(in_common(drawn(0, 1), drawn(epoch, seed))), 250, 60);
  }
}

TEST(Weights, SoSmallThatEpochsAreEmptyAreStillDrawn) {
  const ParallelCorpus corpus = corpus_of({{4, 0.1}});
  BatchStream stream(corpus, kSmall);
  std::vector<int64_t> seen;
  while (seen.size() < 8) {
    const Batch batch = stream.next();
    EXPECT_TRUE(batch.last_of_epoch);
    for (const int64_t pair : pairs_of(batch)) seen.push_back(pair);
  }
  std::sort(seen.begin(), seen.begin() + 4);
  EXPECT_TRUE(std::equal(seen.begin(), seen.begin() + 4, std::vector<int64_t>{0, 1, 2, 3}.begin()));
}

// A checkpoint of today must find its data with every later version: this order is a promise.
TEST(BatchStream, TheShuffledOrderIsFixedForEver) {
  const ParallelCorpus corpus = corpus_of({{20, 1.5}});
  const EpochOrder order(corpus.parts(), 1, 0);
  ASSERT_EQ(order.size(), 30);
  std::vector<int64_t> begin;
  for (int64_t i = 0; i < 10; ++i) begin.push_back(order[i]);
  EXPECT_EQ(begin, (std::vector<int64_t>{17, 14, 18, 7, 18, 3, 6, 12, 1, 15}));
}

TEST(BatchStream, WaitingIsInTheProfile) {
  start_profile();
  BatchStream stream(thousand(), kSmall);
  for (int i = 0; i < 3; ++i) stream.next();
  const std::vector<ProfileRow> rows = profile();
  const auto row = std::find_if(rows.begin(), rows.end(), [](const ProfileRow& each) {
    return each.name == "waiting for data";
  });
  ASSERT_NE(row, rows.end());
  EXPECT_EQ(row->calls, 3);
}

TEST(BatchStream, StopsCleanlyAtAnyMoment) {
  for (int i = 0; i < 50; ++i) {
    BatchStream stream(thousand(), kSmall);
    for (int n = 0; n < i % 12; ++n) stream.next();
    if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));  // it waits, full
  }
}

TEST(ValidationBatches, AreAllPairsOnceInOrder) {
  const ParallelCorpus corpus = corpus_of({{70, 1.0}, {30, 2.0}});
  std::vector<int64_t> seen;
  const std::vector<Batch> batches = validation_batches(corpus, kSmall);
  for (const Batch& batch : batches) {
    EXPECT_LE(std::max(batch.source_tokens, batch.target_tokens), kSmall.batch_tokens);
    const std::vector<int64_t> pairs = pairs_of(batch);
    seen.insert(seen.end(), pairs.begin(), pairs.end());
  }
  ASSERT_EQ(seen.size(), 100U);
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(seen[i], i);
  EXPECT_TRUE(batches.back().last_of_epoch);
}

}  // namespace
}  // namespace attend
