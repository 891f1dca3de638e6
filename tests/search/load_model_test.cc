#include "attend/search/load_model.h"

#include <gtest/gtest.h>

#include "attend/kernels/gemm.h"
#include "tests/data/test_files.h"
#include "tests/search/models.h"

namespace attend {
namespace {

NamedTensors weights_of(const Transformer& model) {
  NamedTensors weights;
  for (const Parameter& parameter : model.parameters().parameters()) {
    weights.emplace_back(parameter.name, parameter.master);
  }
  return weights;
}

class LoadWeights : public testing::Test {
 protected:
  SafetensorsFile saved(const NamedTensors& weights) const {
    write_safetensors(folder_.path("model.safetensors"), weights);
    return SafetensorsFile::open(folder_.path("model.safetensors"));
  }
  std::string complaint(const NamedTensors& weights) const {
    Transformer model(search_config(20), DType::kFloat32);
    return message_of([&] { load_weights(model, saved(weights)); });
  }

  TestFolder folder_;
  std::shared_ptr<Transformer> original_ = random_model(search_config(20), DType::kFloat32, 1);
};

TEST_F(LoadWeights, ErrorsNameTheTensors) {
  NamedTensors weights = weights_of(*original_);
  const std::string first = weights.front().first;
  weights.front().first = "someone.else";
  const std::string renamed = complaint(weights);
  expect_contains(renamed, "missing: " + first);
  expect_contains(renamed, "not the model's: \"someone.else\"");

  weights = weights_of(*original_);
  weights.back().second = Tensor::zeros({3, 3}, DType::kFloat32);
  const std::string reshaped = complaint(weights);
  expect_contains(reshaped, weights.back().first + " is [3, 3] instead of ");
  expect_contains(reshaped, "model.safetensors");

  const std::string empty = complaint({{"x", Tensor::zeros({1}, DType::kFloat32)}});
  expect_contains(empty, "more");
  EXPECT_LT(empty.size(), 600U) << "a few names will do";
}

TEST_F(LoadWeights, NamesOfOthersDoNotReachTheTerminalRaw) {
  NamedTensors weights = weights_of(*original_);
  weights.emplace_back("\x1b[31mred", Tensor::from({1}, {1}));
  const std::string message = complaint(weights);
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
  expect_contains(message, "\"\\u001b[31mred\"");
}

TEST(ChoosePrecision, FallsBackToFloat32) {
  EXPECT_EQ(choose_precision(Precision::kBFloat16),
            has_bfloat16_arithmetic() ? DType::kBFloat16 : DType::kFloat32);
  EXPECT_EQ(choose_precision(Precision::kFloat32), DType::kFloat32);
}

TEST(ChoosePrecision, AutoIsTheFasterOfTheTwo) {
  const DType chosen = choose_precision(Precision::kAuto);
  ASSERT_TRUE(chosen == DType::kFloat32 || chosen == DType::kBFloat16);
  if (!has_bfloat16_arithmetic()) {
    EXPECT_EQ(chosen, DType::kFloat32);
    return;
  }
  const DType other = chosen == DType::kFloat32 ? DType::kBFloat16 : DType::kFloat32;
  // What was measured is a factor of two in either direction; the room is for a busy machine.
  EXPECT_GT(measure_gemm_rate(chosen, 0.1), 0.8 * measure_gemm_rate(other, 0.1));
}

/// The dtypes in which this machine runs a model.
std::vector<DType> weight_dtypes() {
  std::vector<DType> dtypes = {DType::kFloat32};
  if (has_bfloat16_arithmetic()) dtypes.push_back(DType::kBFloat16);
  if (has_int8_arithmetic()) dtypes.push_back(DType::kInt8);
  return dtypes;
}

class LoadModel : public testing::Test {
 protected:
  ModelFiles files_of(const TransformerConfig& config, const NamedTensors& weights) {
    const Path path = folder_.path(fmt::format("{}.safetensors", ++files_));
    write_safetensors(path, weights);
    return {config, nullptr, nullptr, SafetensorsFile::open(path)};
  }
  ModelFiles original(const TransformerConfig& config) {
    return files_of(config, weights_of(*random_model(config, DType::kFloat32, 1)));
  }

  TestFolder folder_;
  int files_ = 0;
};

std::shared_ptr<const Transformer> loaded(const ModelFiles& files, DType weights) {
  auto model = std::make_shared<Transformer>(files.config, weights);
  load_weights(*model, files.weights);
  return model;
}

const TokenSequences& some_sources() {
  static const TokenSequences sources = random_sources(12, 1, 20, 20, 3);
  return sources;
}

void expect_same_search(const Transformer& a, const Transformer& b) {
  const auto found = search_all(a, some_sources(), {}), wanted = search_all(b, some_sources(), {});
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].front().tokens, wanted[i].front().tokens);
    EXPECT_EQ(found[i].front().log_prob, wanted[i].front().log_prob);
  }
}

TEST_F(LoadModel, EveryPrecisionIsNearTheModelThatWasTrained) {
  for (const TransformerConfig& config : search_configs(20)) {
    const auto trained = random_model(config, DType::kFloat32, 1);
    const ModelFiles files = original(config);
    for (const DType dtype : weight_dtypes()) {
      const auto model = loaded(files, dtype);
      EXPECT_EQ(model->compute(), dtype == DType::kBFloat16 ? dtype : DType::kFloat32);
      const std::vector<int32_t> source = {5, 6, 7, 8}, output = {9, 4, 11};
      const auto wanted = decode_in_full(*trained, source, output);
      const auto found = decode_in_full(*model, source, output);
      for (std::size_t row = 0; row < wanted.size(); ++row) {
        for (std::size_t i = 0; i < wanted[row].size(); ++i) {
          EXPECT_NEAR(found[row][i], wanted[row][i], dtype == DType::kFloat32 ? 1e-4 : 0.5)
              << name_of(dtype);
        }
      }
    }
  }
}

TEST_F(LoadModel, AConvertedModelIsTheOneThatWouldBeConvertedOnLoading) {
  if (!has_int8_arithmetic()) GTEST_SKIP() << "this CPU does not multiply int8";
  for (const TransformerConfig& config : search_configs(20)) {
    const ModelFiles files = original(config);
    const ModelFiles converted = files_of(config, convert_weights(files, DType::kInt8));
    EXPECT_EQ(stored_dtype(converted.weights), DType::kInt8);
    expect_same_search(*loaded(files, DType::kInt8), *loaded(converted, DType::kInt8));
    EXPECT_EQ(load_model(converted, InferencePrecision::kAuto)->weights(), DType::kInt8);
    // Once int8, always the same int8, whatever came between.
    const ModelFiles again = files_of(config, convert_weights(converted, DType::kInt8));
    expect_same_search(*loaded(converted, DType::kInt8), *loaded(again, DType::kInt8));
    // What int8 stands for can be computed in float32.
    const ModelFiles widened = files_of(config, convert_weights(converted, DType::kFloat32));
    expect_same_search(*loaded(converted, DType::kFloat32), *loaded(widened, DType::kFloat32));
  }
}

TEST_F(LoadModel, ConvertingMakesSmallFiles) {
  TransformerConfig config = search_config(500);
  config.d_model = 128;
  config.d_ff = 256;
  const ModelFiles files = original(config);
  const auto size = static_cast<double>(files.weights.file_bytes());
  const ModelFiles int8 = files_of(config, convert_weights(files, DType::kInt8));
  const ModelFiles bfloat16 = files_of(config, convert_weights(files, DType::kBFloat16));
  EXPECT_LT(static_cast<double>(int8.weights.file_bytes()), 0.29 * size);
  EXPECT_LT(static_cast<double>(bfloat16.weights.file_bytes()), 0.53 * size);
  EXPECT_EQ(stored_dtype(bfloat16.weights), DType::kBFloat16);
  for (const DType dtype : weight_dtypes()) loaded(bfloat16, dtype);
}

TEST_F(LoadModel, AnAnswerDependsOnNothingElseInEveryPrecision) {
  for (const TransformerConfig& config : search_configs(20)) {
    const ModelFiles files = original(config);
    for (const DType dtype : weight_dtypes()) {
      const auto model = loaded(files, dtype);
      const TokenSequences sources = random_sources(40, 1, 30, 20, 5);
      const auto together = search_all(*model, sources, {.beam_size = 3});
      for (std::size_t i = 0; i < sources.size(); i += 7) {
        const auto alone = search_all(*model, {sources[i]}, {.beam_size = 3});
        EXPECT_EQ(alone[0].front().tokens, together[i].front().tokens) << name_of(dtype);
        EXPECT_EQ(alone[0].front().log_prob, together[i].front().log_prob) << name_of(dtype);
      }
    }
  }
}

TEST_F(LoadModel, MissingScalesAreNamed) {
  const ModelFiles files = original(search_config(20));
  NamedTensors weights = convert_weights(files, DType::kInt8);
  std::erase_if(weights, [](const auto& each) {
    return each.first == "decoder.layers.1.feed_forward.inner.weight.scale";
  });
  const ModelFiles damaged = files_of(files.config, weights);
  expect_contains(message_of([&] { loaded(damaged, DType::kFloat32); }),
                  "missing: decoder.layers.1.feed_forward.inner.weight.scale");
}

}  // namespace
}  // namespace attend
