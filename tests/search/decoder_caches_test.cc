#include "attend/search/decoder_caches.h"

#include <numeric>

#include <gtest/gtest.h>

#include "tests/search/models.h"

namespace attend {
namespace {

TEST(FreeSlots, GiveTheLowestFirstAndThoseThatNobodyKept) {
  FreeSlots slots;
  slots.grow(4);
  for (const int32_t slot : {0, 1, 2, 3}) EXPECT_EQ(slots.take(), slot);
  EXPECT_EQ(slots.free(), 0);
  slots.forget();
  slots.keep(std::vector<int32_t>{2, 0, 2});
  slots.sweep();
  EXPECT_EQ(slots.free(), 2);
  slots.grow(5);
  for (const int32_t slot : {1, 3, 4}) EXPECT_EQ(slots.take(), slot);
  EXPECT_EQ(slots.free(), 0);
}

TEST(FreeRanges, AreJoinedAgainWhenTheyComeBack) {
  FreeRanges ranges;
  EXPECT_FALSE(ranges.take(1));
  ranges.reset(10, 1);
  std::vector<MemoryRange> taken;
  for (int i = 0; i < 3; ++i) {
    taken.push_back(*ranges.take(3));
    EXPECT_EQ(taken.back().first, 1 + 3 * i);
  }
  EXPECT_EQ(ranges.in_use(), 10);
  EXPECT_FALSE(ranges.take(1));
  ranges.give_back(taken[0]);
  ranges.give_back(taken[2]);
  EXPECT_FALSE(ranges.take(4));
  ranges.give_back(taken[1]);
  EXPECT_EQ(ranges.take(9)->first, 1);
  EXPECT_EQ(ranges.in_use(), 10);
}

TEST(FreeRanges, AgreeWithABitmap) {
  RandomGenerator random(5);
  FreeRanges ranges;
  ranges.reset(64, 0);
  std::vector<int> used(64, 0);
  std::vector<MemoryRange> held;
  for (int step = 0; step < 3000; ++step) {
    if (!held.empty() && random.uniform_index(2) == 0) {
      const auto at = static_cast<std::ptrdiff_t>(random.uniform_index(held.size()));
      const MemoryRange range = held[static_cast<std::size_t>(at)];
      std::fill_n(used.begin() + range.first, range.count, 0);
      ranges.give_back(range);
      held.erase(held.begin() + at);
    } else {
      const auto count = static_cast<int64_t>(1 + random.uniform_index(12));
      const auto place = std::search_n(used.begin(), used.end(), count, 0) - used.begin();
      const auto range = ranges.take(count);
      ASSERT_EQ(range.has_value(), place < 64) << "step " << step;
      if (!range) continue;
      ASSERT_EQ(range->first, place);
      ASSERT_EQ(range->count, count);
      std::fill_n(used.begin() + place, count, 1);
      held.push_back(*range);
    }
    ASSERT_EQ(ranges.in_use(), std::accumulate(used.begin(), used.end(), 0));
  }
}

class Caches {
 public:
  Caches()
      : model_(random_model(search_config(20), DType::kFloat32, 1)),
        models_(make_pool_models(std::vector<const Transformer*>{model_.get()}, memory_)),
        caches(models_) {}

  const KeyValueCache& memory(std::size_t layer) const { return models_[0].caches[layer].memory; }
  const KeyValueCache& self(std::size_t layer) const { return models_[0].caches[layer].self; }

 private:
  std::shared_ptr<Transformer> model_;
  MemoryPool memory_;
  std::vector<PoolModel> models_;

 public:
  DecoderCaches caches;
};

TEST(DecoderCaches, GiveUpSlotsThatNobodyHoldsBeforeTheyGrow) {
  Caches test;
  std::vector<int32_t> held;
  const auto reserve = [&](int64_t rows) {
    test.caches.reserve_slots(rows, [&](FreeSlots& slots) { slots.keep(held); });
  };
  for (int step = 0; step < 1000; ++step) {
    reserve(2);
    held = {test.caches.take_slot()};
    test.caches.take_slot();
  }
  const int64_t slots = test.caches.slots();
  EXPECT_LE(slots, 256);
  while (std::ssize(held) < 2 * slots) {
    reserve(1);
    held.push_back(test.caches.take_slot());
  }
  EXPECT_LE(test.caches.slots(), 3 * slots + 2);
  std::sort(held.begin(), held.end());
  EXPECT_EQ(std::unique(held.begin(), held.end()), held.end());
  EXPECT_EQ(test.self(1).keys.rows(), test.caches.slots());
}

TEST(DecoderCaches, KeepWhatIsHeldWhereTheyGrow) {
  Caches test;
  std::vector<int32_t> held;
  for (int step = 0; step < 2000; ++step) {
    test.caches.reserve_slots(1, [&](FreeSlots& slots) { slots.keep(held); });
    held.push_back(test.caches.take_slot());
    test.self(1)
        .keys.slice_rows(held.back(), held.back() + 1)
        .assign(std::vector<float>(32, static_cast<float>(step)));
  }
  for (std::size_t i = 0; i < held.size(); ++i) {
    const std::vector<float> row = test.self(1).keys.slice_rows(held[i], held[i] + 1).to_vector();
    ASSERT_EQ(row, std::vector<float>(32, static_cast<float>(i)));
  }
}

TEST(DecoderCaches, RangesMoveWithTheirRowsAndStayWithinHalfAsMuchAgain) {
  Caches test;
  RandomGenerator random(3);
  std::vector<std::unique_ptr<MemoryRange>> ranges;
  std::vector<float> marks;
  int64_t most = 0;
  for (int step = 0; step < 500; ++step) {
    if (ranges.size() > 30) {
      const auto at = static_cast<std::ptrdiff_t>(random.uniform_index(ranges.size()));
      test.caches.give_back(*ranges[static_cast<std::size_t>(at)]);
      ranges.erase(ranges.begin() + at);
      marks.erase(marks.begin() + at);
    }
    std::vector<MemoryRange*> held;
    int64_t in_use = 0;
    for (const auto& range : ranges) {
      held.push_back(range.get());
      in_use += range->count;
    }
    const auto count = static_cast<int64_t>(1 + random.uniform_index(20));
    most = std::max(most, in_use + count);
    ranges.push_back(std::make_unique<MemoryRange>(test.caches.take_range(count, held)));
    marks.push_back(static_cast<float>(step));
    const int64_t first = ranges.back()->first;
    test.memory(0)
        .values.slice_rows(first, first + count)
        .assign(std::vector<float>(static_cast<std::size_t>(32 * count), marks.back()));
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const MemoryRange& range = *ranges[i];
      const std::vector<float> rows =
          test.memory(0).values.slice_rows(range.first, range.first + range.count).to_vector();
      ASSERT_EQ(rows, std::vector<float>(rows.size(), marks[i]));
    }
  }
  EXPECT_LE(test.caches.memory_rows(), std::max<int64_t>(most + most / 2, 64));
}

}  // namespace
}  // namespace attend
