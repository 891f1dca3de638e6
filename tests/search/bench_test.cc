#include "attend/search/bench.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "attend/base/error.h"
#include "attend/io/model_directory.h"
#include "tests/data/test_files.h"
#include "tests/search/models.h"

namespace attend {
namespace {

std::filesystem::path model_in(const TestFolder& folder) {
  const std::shared_ptr<const Tokenizer> tokenizer(std::shared_ptr<const Tokenizer>(),
                                                   &small_tokenizer());
  const auto model =
      random_model(search_config(small_tokenizer().vocabulary_size()), DType::kFloat32, 3);
  NamedTensors weights;
  for (const Parameter& parameter : model->parameters().parameters()) {
    weights.emplace_back(parameter.name, parameter.master);
  }
  save_model_directory(folder.path("model"), model->config(), tokenizer, tokenizer, weights);
  return folder.path("model");
}

TEST(TranslateBench, CountsEveryCopyAndTimesEveryRepetition) {
  const TestFolder folder;
  const TranslateBenchResult result =
      bench_translate(model_in(folder), {"ein Haus", "", "der alte Hund"},
                      {.translator = {.search = {.max_extra_length = 5}, .workers = 2},
                       .copies = 4,
                       .repetitions = 3,
                       .singles = 2});
  EXPECT_EQ(result.counts.lines, 12);
  EXPECT_EQ(result.counts.blank, 4);
  EXPECT_EQ(result.workers, 2);
  ASSERT_EQ(result.seconds.size(), 3U);
  EXPECT_EQ(result.latencies.size(), 2U);
  EXPECT_TRUE(std::is_sorted(result.seconds.begin(), result.seconds.end()));
  EXPECT_DOUBLE_EQ(result.sentences_per_second(), 12 / result.seconds[1]);
  EXPECT_EQ(result.counts.target_tokens % 4, 0);
  const auto json = nlohmann::json::parse(to_json(result));
  EXPECT_EQ(json["lines"], 12);
  EXPECT_TRUE(std::any_of(json["profile"].begin(), json["profile"].end(),
                          [](const auto& row) { return row["name"] == "gemm"; }));
}

TEST(TranslateBench, LatencyIsWhatAShareOfTheLinesKeepsWithin) {
  TranslateBenchResult result;
  EXPECT_EQ(result.latency(0.5), 0);
  for (int i = 1; i <= 100; ++i) result.latencies.push_back(i);
  EXPECT_EQ(result.latency(0.5), 50);
  EXPECT_EQ(result.latency(0.95), 95);
  EXPECT_EQ(result.latency(0.99), 99);
  EXPECT_EQ(result.latency(0), 1);
  EXPECT_EQ(result.latency(1), 100);
}

TEST(TranslateBench, NoTextIsAnError) {
  const TestFolder folder;
  EXPECT_THROW(bench_translate(model_in(folder), {}, {}), Error);
  EXPECT_THROW(bench_translate(folder.path("model"), {"a"}, {.copies = 0}), UsageError);
}

}  // namespace
}  // namespace attend
