#include "attend/io/average.h"

#include <gtest/gtest.h>

#include "attend/io/checkpoint.h"
#include "attend/io/model_directory.h"
#include "tests/io/models.h"

namespace attend {
namespace {

TEST(Average, IsTheMean) {
  const TemporaryFolder folder;
  const Tensor narrow({2}, DType::kBFloat16);
  narrow.assign({3, 0.5F});
  write_safetensors(folder / "a",
                    {{"w", Tensor::from({1, 2}, {2})}, {"b", Tensor::from({7}, {1})}});
  write_safetensors(folder / "b",
                    {{"w", Tensor::from({2, 4}, {2})}, {"b", Tensor::from({8}, {1})}});
  write_safetensors(folder / "c", {{"w", narrow}, {"b", Tensor::from({9}, {1})}});
  const NamedTensors mean = average_models({folder / "a", folder / "b", folder / "c"});
  ASSERT_EQ(mean.size(), 2U);
  EXPECT_EQ(mean[0].first, "b");
  EXPECT_EQ(mean[0].second.to_vector(), std::vector<float>{8});
  EXPECT_EQ(mean[1].second.dtype(), DType::kFloat32);
  EXPECT_EQ(mean[1].second.to_vector(), (std::vector<float>{2, static_cast<float>(6.5 / 3)}));
}

TEST(Average, OfOneModelIsThatModel) {
  const TemporaryFolder folder;
  write_safetensors(folder / "a", {{"w", Tensor::from({0.1F, -1e-30F}, {2})}});
  EXPECT_EQ(average_models({folder / "a"})[0].second.to_vector(),
            (std::vector<float>{0.1F, -1e-30F}));
  EXPECT_THROW(average_models({}), UsageError);
}

TEST(Average, TakesModelDirectoriesAndCheckpoints) {
  const TemporaryFolder folder;
  const TransformerConfig config = small_config();
  save_model_directory(folder / "one", config, small_tokenizer(), small_tokenizer(),
                       small_weights(config, 1));
  NamedTensors tensors;
  for (const auto& [name, tensor] : small_weights(config, 3)) {
    tensors.emplace_back(std::string(kWeightsPrefix) + name, tensor);
    tensors.emplace_back(std::string(kAdamMeanPrefix) + name, tensor);
  }
  save_checkpoint(folder / "two", 5, tensors, {});
  const std::vector<Path> paths = {folder / "one", checkpoint_path(folder / "two", 5)};
  NamedTensors mean = average_models(paths);
  ASSERT_EQ(mean.size(), 2U);
  EXPECT_EQ(mean[0].first, "decoder.weight");
  EXPECT_EQ(mean[0].second.to_vector(), std::vector<float>(100, 2));

  for (const auto& [name, tensor] : small_weights(config, 5)) {
    tensors.emplace_back(std::string(kAveragePrefix) + name, tensor);
  }
  save_checkpoint(folder / "two", 5, tensors, {});
  mean = average_models(paths);
  EXPECT_EQ(mean[0].second.to_vector(), std::vector<float>(100, 3));  // of 1 and the average, 5
}

TEST(Average, DifferencesAreNamed) {
  const TemporaryFolder folder;
  const Tensor one = Tensor::from({1}, {1});
  write_safetensors(folder / "a", {{"v", one}, {"w", one}});
  write_safetensors(folder / "b", {{"w", one}});
  write_safetensors(folder / "c", {{"v", Tensor::from({1, 2}, {2})}, {"w", one}});
  const auto refused = [&](const char* left, const char* right) {
    return message_of([&] { average_models({folder / left, folder / right}); });
  };
  const std::string a = (folder / "a").string();
  const std::string b = (folder / "b").string();
  expect_contains(refused("a", "b"),
                  "cannot average " + a + " and " + b + ": only the first has the tensor \"v\"");
  expect_contains(refused("b", "a"),
                  "cannot average " + a + " and " + b + ": only the first has the tensor \"v\"");
  expect_contains(refused("a", "c"), "tensor \"v\" has the shape [1] in the first and [2]");
}

TEST(Average, RefusesOtherConfigurationsAndTokenizers) {
  const TemporaryFolder folder;
  const auto save = [&](const char* name, const TransformerConfig& config,
                        const std::shared_ptr<const Tokenizer>& tokenizer) {
    save_model_directory(folder / name, config, tokenizer, tokenizer, small_weights(config));
  };
  TransformerConfig config = small_config();
  save("a", config, small_tokenizer());
  config.heads = 1;
  save("b", config, small_tokenizer());
  save("c", small_config(), small_tokenizer(305));
  expect_contains(message_of([&] {
                    average_models({folder / "a", folder / "b"});
                  }),
                  "heads is 2 in the first and 1 in the second");
  expect_contains(message_of([&] {
                    average_models({folder / "a", folder / "c"});
                  }),
                  "the source_tokenizer of the first is");
}

TEST(Average, RefusesCheckpointsAndWeightsOfOtherModels) {
  const TemporaryFolder folder;
  const TransformerConfig relu = small_config();
  TransformerConfig gelu = relu;
  gelu.activation = Activation::kGelu;
  const auto save = [&](const char* name, const std::map<std::string, std::string>& metadata) {
    NamedTensors tensors;
    for (const auto& [weight, tensor] : small_weights(relu)) {
      tensors.emplace_back(std::string(kWeightsPrefix) + weight, tensor);
    }
    save_checkpoint(folder / name, 1, tensors, {}, metadata);
    return checkpoint_path(folder / name, 1);
  };
  const Tokenizer& tokenizer = *small_tokenizer();
  const Path mine = save("mine", model_metadata(relu, tokenizer, tokenizer));
  const Path other = save("other", model_metadata(gelu, tokenizer, tokenizer));
  const Path foreign = save("foreign", model_metadata(relu, tokenizer, *small_tokenizer(305)));
  const std::string message = message_of([&] { average_models({mine, other}); });
  expect_contains(message, "cannot average " + mine.string() + " and " + other.string());
  expect_contains(message, "activation is relu in the first and gelu in the second");
  expect_contains(message_of([&] {
                    average_models({mine, foreign});
                  }),
                  "the target_tokenizer of the first is");
  EXPECT_NO_THROW(average_models({mine, mine, save("old", {})}));  // that says nothing

  save_model_directory(folder / "model", gelu, small_tokenizer(), small_tokenizer(),
                       small_weights(gelu));
  expect_contains(message_of([&] {
                    average_models({mine, folder / "model" / kWeightsFile});
                  }),
                  "activation is relu in the first and gelu in the second");
}

}  // namespace
}  // namespace attend
