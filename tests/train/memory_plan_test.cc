#include "attend/train/memory_plan.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "attend/base/available_memory.h"
#include "attend/search/beam_search.h"
#include "tests/train/process.h"
#include "tests/train/support.h"

namespace attend {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

/// A model and an engine as a run has them when it plans.
struct Planned {
  explicit Planned(const TrainOptions& given) : options(given) {
    options.model.source_vocabulary_size = options.model.target_vocabulary_size = 1000;
    model = std::make_unique<Transformer>(options.model, DType::kFloat32, true);
    model->initialize(1);
    engine = std::make_unique<Engine>(*model, options, options.workers);
  }
  MemoryPlan plan(int64_t bytes) {
    options.memory.bytes = bytes;
    return plan_memory(options, *engine);
  }
  TrainOptions options;
  std::unique_ptr<Transformer> model;
  std::unique_ptr<Engine> engine;
};

TrainOptions long_lanes(int64_t workers) {
  TrainOptions options;
  options.model = preset("tiny");
  options.lane_tokens = 4096;
  options.batch_tokens = 8192;
  options.workers = workers;
  return options;
}

class MemoryPlanTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef ATTEND_SANITIZE
    GTEST_SKIP() << "sanitizers take memory of their own";
#endif
  }
};
using Contract18 = MemoryPlanTest;

TEST_F(MemoryPlanTest, LanesGrowWithTheMemory) {
  Planned planned(long_lanes(1));
  const int64_t now = resident_bytes();
  int64_t before = 0;
  for (const int64_t more : {120, 200, 400}) {
    const MemoryPlan plan = planned.plan(now + more * kMiB);
    EXPECT_GT(plan.lane_tokens, before) << more;
    EXPECT_GT(plan.search_batch_tokens, 0);
    before = plan.lane_tokens;
  }
  EXPECT_LE(before, 4096);
  EXPECT_EQ(planned.plan(now + 4000 * kMiB).lane_tokens, 4096);
  EXPECT_EQ(planned.plan(now + 4000 * kMiB).search_batch_tokens,
            with_batch_tokens({}, planned.options.model).batch_tokens);
}

TEST_F(MemoryPlanTest, RecomputingMakesRoomForMore) {
  Planned planned(long_lanes(1));
  const int64_t bytes = resident_bytes() + 200 * kMiB;
  const int64_t keeping = planned.plan(bytes).lane_tokens;
  planned.options.recompute = true;
  EXPECT_GT(planned.plan(bytes).lane_tokens, keeping * 3 / 2);
}

TEST_F(MemoryPlanTest, TwoPassesTakeTheRoomOfOneTwiceAsLarge) {
  Planned planned(long_lanes(1));
  const int64_t bytes = resident_bytes() + 300 * kMiB;
  const int64_t once = planned.plan(bytes).lane_tokens;
  planned.options.regularization.r_drop = 5;
  const int64_t twice = planned.plan(bytes).lane_tokens;
  EXPECT_LT(twice, once * 7 / 10);
  EXPECT_GT(twice, once * 3 / 10);
}

TEST_F(MemoryPlanTest, LeavesTheModelAsItWas) {
  Planned planned(long_lanes(2));
  const auto weights = planned.model->parameters().flat_master().to_vector();
  planned.plan(resident_bytes() + 300 * kMiB);
  EXPECT_EQ(planned.model->parameters().flat_master().to_vector(), weights);
  for (const float each : planned.model->parameters().flat_gradient().to_vector()) {
    ASSERT_EQ(each, 0.0F);
  }
}

TEST_F(MemoryPlanTest, SaysWhatIsTooMuch) {
  Planned planned(long_lanes(2));
  const auto complaint = [&](int64_t bytes) { return message_of([&] { planned.plan(bytes); }); };
  const std::string fixed = complaint(8 * kMiB);
  expect_contains(fixed, "8M is allowed; give more or choose a smaller model");
  int64_t mib = 0;
  ASSERT_EQ(
      std::sscanf(fixed.c_str(), "memory: the model, its optimizer and the data take %ld", &mib),
      1);
  std::string text = fixed;
  for (mib -= 50; text.find("before the first batch") != std::string::npos; mib += 5) {
    text = complaint(mib * kMiB);  // what is fixed differs a little from one time to the next
  }
  expect_contains(text, "2 workers with a pair of 256 tokens");
}

// The whole command, on sentences of very different lengths, with translations in between.
TEST_F(Contract18, TrainingAndValidationStayWithinTheMemory) {
  const TrainingFolder folder;
  TrainOptions options = folder.validated("run");
  std::string source, target;
  for (int line = 0; line < 300; ++line) {
    const std::string text = sentences(line % 10 == 0 ? 12 : 1, 5 + line);
    for (const char c : text) source += c == '\n' ? ' ' : c;
    source += '\n';
  }
  put(folder.file("long.a"), source);
  put(folder.file("long.b"), in_capitals(source));
  options.train_source = {folder.file("long.a")};
  options.train_target = {folder.file("long.b")};
  options.model = preset("tiny");
  options.model.dropout = 0.1F;
  options.validation_metric = ValidationMetric::kBleu;
  options.max_length = 200;
  options.batch_tokens = 4096;
  options.lane_tokens = 4096;
  options.workers = 2;
  options.stop_after = {.updates = 12};
  options.log_every = 1;
  options.memory.bytes = 300 * kMiB;
  Process process(train_arguments(options), folder.path());
  ASSERT_EQ(process.wait(), 0) << process.err();
  expect_contains(process.err(), "memory: ");
  const auto events = events_of(options.run, "train");
  ASSERT_EQ(events.size(), 12U);
  EXPECT_LE(events.back().at("peak_resident_bytes"), options.memory.bytes);
}

}  // namespace
}  // namespace attend
