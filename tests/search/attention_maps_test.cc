#include "attend/search/attention_maps.h"

#include <numeric>

#include <gtest/gtest.h>

#include "attend/kernels/compute_thread.h"
#include "attend/search/pair_scorer.h"
#include "tests/data/test_files.h"
#include "tests/search/models.h"

namespace attend {
namespace {

std::shared_ptr<const Tokenizer> tokenizer() {
  return {std::shared_ptr<const Tokenizer>(), &small_tokenizer()};
}

AttentionMap map_of(const Transformer& model, const std::string& source,
                    const std::string& target) {
  prepare_compute_thread();
  return attention_map(model, small_tokenizer(), small_tokenizer(), source, target, 20);
}

TEST(AttentionMap, MeanOfHeadsIsWhatIsAlignedBy) {
  for (const TransformerConfig& config : search_configs(small_tokenizer().vocabulary_size())) {
    const auto model = random_model(config, DType::kFloat32, 3);
    const AttentionMap map = map_of(*model, "one two", "a dog three");
    const std::size_t rows = map.target_pieces.size(), columns = map.source_pieces.size();
    const auto heads = static_cast<std::size_t>(config.heads);
    ASSERT_EQ(map.layers, 2);
    ASSERT_EQ(map.weights.size(), 2 * heads * rows * columns);
    bool heads_differ = false;
    for (std::size_t layer = 0; layer < 2; ++layer) {
      PairScorer scorer(
          model, tokenizer(), tokenizer(),
          {.workers = 1,
           .details = {.attention = true, .alignment_layer = static_cast<int64_t>(layer) + 1}});
      const auto mean = scorer.score({{"one two", "a dog three", ""}})[0];
      EXPECT_EQ(map.source_pieces, mean.source_pieces);
      EXPECT_EQ(map.target_pieces, mean.target_pieces);
      for (std::size_t t = 0; t < rows; ++t) {
        for (std::size_t s = 0; s < columns; ++s) {
          const auto weight = [&](std::size_t head) {
            return map.weights[((layer * heads + head) * rows + t) * columns + s];
          };
          float sum = 0;
          for (std::size_t head = 0; head < heads; ++head) sum += weight(head);
          EXPECT_NEAR(sum / static_cast<float>(heads), mean.attention[t][s], 1e-6);
          heads_differ = heads_differ || std::abs(weight(0) - weight(1)) > 1e-3F;
        }
      }
    }
    EXPECT_TRUE(heads_differ);
    for (auto row = map.weights.begin(); row != map.weights.end();
         row += std::ssize(map.source_pieces)) {
      EXPECT_NEAR(std::accumulate(row, row + std::ssize(map.source_pieces), 0.0F), 1, 1e-5);
    }
  }
}

TEST(AttentionMap, IsEmptyOfWhatCannotBeLookedAt) {
  const auto model =
      random_model(search_config(small_tokenizer().vocabulary_size()), DType::kFloat32, 3);
  std::string long_text;
  for (int i = 0; i < 30; ++i) long_text += "one ";
  EXPECT_TRUE(map_of(*model, "", "one").weights.empty());
  EXPECT_TRUE(map_of(*model, "one", "").weights.empty());
  EXPECT_TRUE(map_of(*model, "one", long_text).weights.empty());
  EXPECT_FALSE(map_of(*model, "one", "one").weights.empty());
}

}  // namespace
}  // namespace attend
