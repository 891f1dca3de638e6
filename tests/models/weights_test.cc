#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "attend/models/transformer.h"

namespace attend {
namespace {

/// The weights that a model of this configuration really has.
int64_t weights_of(const TransformerConfig& config) {
  const Transformer model(config, DType::kFloat32, false);
  int64_t count = 0;
  std::set<std::string> names;
  for (const Parameter& parameter : model.parameters().parameters()) {
    EXPECT_TRUE(names.insert(parameter.name).second) << parameter.name;
    count += count_of(parameter.shape);
  }
  return count;
}

TransformerConfig small() {
  TransformerConfig config = preset("tiny");
  config.source_vocabulary_size = config.target_vocabulary_size = 300;
  return config;
}

/// Model directories are refused by parameter_count (contract 21), so it must be the model's own.
TEST(Weights, AreAsManyAsTheConfigurationSays) {
  const std::vector<std::function<void(TransformerConfig&)>> changes = {
      [](auto&) {},
      [](auto& c) { c.norm = NormPlacement::kPre; },
      [](auto& c) { c.positions = Positions::kLearned; },
      [](auto& c) { c.positions = Positions::kRotary; },
      [](auto& c) { c.attention_score = AttentionScore::kAdditive; },
      [](auto& c) { c.tied_embeddings = TiedEmbeddings::kDecoder, c.source_vocabulary_size = 290; },
      [](auto& c) { c.tied_embeddings = TiedEmbeddings::kNone, c.source_vocabulary_size = 290; },
      [](auto& c) { c.d_k = 16, c.d_v = 24; },
      [](auto& c) { c.encoder_layers = 1, c.decoder_layers = 3, c.d_ff = 100; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    TransformerConfig config = small();
    changes[i](config);
    EXPECT_EQ(weights_of(config), parameter_count(config)) << "change " << i;
  }
}

TEST(Weights, OfThePapersBaseModel) {
  TransformerConfig config = preset("base");
  config.source_vocabulary_size = config.target_vocabulary_size = 37000;
  EXPECT_EQ(weights_of(config), 63'082'496);
}

}  // namespace
}  // namespace attend
