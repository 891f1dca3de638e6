#include "attend/search/load_model.h"

#include <gtest/gtest.h>

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
    Transformer model(search_config(20), DType::kFloat32, false);
    return message_of([&] { load_weights(model, saved(weights)); });
  }

  TestFolder folder_;
  std::shared_ptr<Transformer> original_ = random_model(search_config(20), DType::kFloat32, 1);
};

TEST_F(LoadWeights, BringBackTheModel) {
  for (const DType compute : {DType::kFloat32, DType::kBFloat16}) {
    if (compute == DType::kBFloat16 && !has_bfloat16_arithmetic()) continue;
    const auto expected = random_model(search_config(20), compute, 1);
    Transformer loaded(search_config(20), compute, false);
    load_weights(loaded, saved(weights_of(*original_)));
    for (const auto& [name, tensor] : weights_of(loaded)) {
      EXPECT_EQ(tensor.to_vector(), expected->parameters().find(name).master.to_vector()) << name;
    }
    const TokenSequences sources = random_sources(3, 2, 9, 20, 1);
    const auto found = search_all(loaded, sources, {});
    const auto wanted = search_all(*expected, sources, {});
    for (std::size_t i = 0; i < sources.size(); ++i) {
      EXPECT_EQ(found[i].front().tokens, wanted[i].front().tokens);
      EXPECT_EQ(found[i].front().log_prob, wanted[i].front().log_prob);
    }
  }
}

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

TEST(ChoosePrecision, GivesWhatTheCpuHas) {
  const DType best = has_bfloat16_arithmetic() ? DType::kBFloat16 : DType::kFloat32;
  EXPECT_EQ(choose_precision(Precision::kAuto), best);
  EXPECT_EQ(choose_precision(Precision::kBFloat16), best);
  EXPECT_EQ(choose_precision(Precision::kFloat32), DType::kFloat32);
}

}  // namespace
}  // namespace attend
