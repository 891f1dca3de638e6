#include "attend/nn/layers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "attend/base/error.h"
#include "tests/support/numbers.h"

namespace attend::testing {
namespace {

TransformerConfig config_of(NormPlacement norm) {
  TransformerConfig config;
  config.d_model = 6;
  config.d_ff = 10;
  config.heads = 3;
  config.dropout = 0;
  config.norm = norm;
  return config;
}

std::vector<std::string> names_of(const ParameterSet& set) {
  std::vector<std::string> names;
  for (const Parameter& parameter : set.parameters()) names.push_back(parameter.name);
  return names;
}

TEST(Linear, IsAMatrixAndABias) {
  ParameterSet set;
  const Linear layer(set, "layer", 3, 2);
  set.allocate(DType::kFloat32, false);
  set.find("layer.weight").master.assign({1, 2, 3, 4, 5, 6});
  set.find("layer.bias").master.assign({10, 20});
  Context context;
  const Variable x(Tensor::from({1, 0, 0, 0, 1, 1}, {2, 3}), DType::kFloat32);
  EXPECT_EQ(layer(context, x).value().to_vector(), (std::vector<float>{11, 24, 15, 31}));
}

// Glorot & Bengio 2010: uniform within √(6 / (in + out)); a fused projection counts one part's out.
TEST(Linear, BeginsWithinGlorotsLimits) {
  ParameterSet set;
  const Linear plain(set, "plain", 200, 100), fused(set, "fused", 200, 300, 100);
  set.allocate(DType::kFloat32, false);
  set.initialize(1);
  const float limit = std::sqrt(6.0F / 300);
  for (const char* name : {"plain.weight", "fused.weight"}) {
    const std::vector<float> weights = set.find(name).master.to_vector();
    const auto [least, most] = std::minmax_element(weights.begin(), weights.end());
    EXPECT_GE(*least, -limit);
    EXPECT_LE(*most, limit);
    EXPECT_LT(*least, -0.99F * limit);
    EXPECT_GT(*most, 0.99F * limit);
    double sum = 0, squares = 0;
    for (const float weight : weights) {
      sum += static_cast<double>(weight);
      squares += static_cast<double>(weight) * static_cast<double>(weight);
    }
    const auto count = static_cast<double>(weights.size());
    EXPECT_NEAR(sum / count, 0, 0.002);
    EXPECT_NEAR(squares / count, static_cast<double>(limit * limit) / 3, 2e-4);
  }
  for (const float bias : set.find("plain.bias").master.to_vector()) EXPECT_EQ(bias, 0.0F);
}

TEST(ParameterSet, EveryWeightHasAPlaceOfItsOwn) {
  ParameterSet set;
  Parameter& one = set.add("one", {3, 5}, constant(1));
  Parameter& two = set.add("two", {7}, constant(2));
  Parameter& three = set.add("three", {2, 2}, normal(1));
  set.allocate(DType::kBFloat16, true);
  set.initialize(3);
  EXPECT_EQ(set.weight_count(), 15 + 7 + 4);
  EXPECT_EQ(one.master.to_vector(), std::vector<float>(15, 1.0F));
  EXPECT_EQ(two.master.to_vector(), std::vector<float>(7, 2.0F));
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(three.compute.data<BFloat16>()[i].bits,
              to_bfloat16(three.master.data<float>()[i]).bits);
  }
  for (const Parameter& parameter : set.parameters()) {
    EXPECT_EQ(parameter.gradient.shape(), parameter.shape);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(parameter.master.raw()) % 64, 0U);
  }
  const auto views = set.views(set.flat_master());
  ASSERT_EQ(views.size(), 3U);
  EXPECT_EQ(views[1].first, "two");
  EXPECT_EQ(views[1].second.raw(), two.master.raw());
  EXPECT_EQ(&set.find("three"), &three);
  EXPECT_THROW(set.find("four"), Error);
  EXPECT_THROW(set.add("four", {1}, constant(0)), Error);
}

TEST(FeedForward, IsTwoLayersAroundAnActivation) {
  for (const auto kind : {Activation::kRelu, Activation::kGelu, Activation::kSilu}) {
    TransformerConfig config = config_of(NormPlacement::kPost);
    config.activation = kind;
    ParameterSet set;
    const FeedForward layer(set, "ffn", config);
    EXPECT_EQ(names_of(set), (std::vector<std::string>{"ffn.inner.weight", "ffn.inner.bias",
                                                       "ffn.outer.weight", "ffn.outer.bias"}));
    set.allocate(DType::kFloat32, false);
    set.initialize(1);
    Context context;
    const Variable x(random_tensor({4, 6}, 2), DType::kFloat32);
    const Variable inner =
        linear(context, x, set.find("ffn.inner.weight"), &set.find("ffn.inner.bias"));
    std::vector<float> values = inner.value().to_vector();
    for (float& value : values) {
      const double v = static_cast<double>(value);
      const double gelu = v * 0.5 * std::erfc(-v * std::sqrt(0.5));
      const double silu = v / (1 + std::exp(-v));
      const double relu = std::max(v, 0.0);
      value = static_cast<float>(kind == Activation::kRelu   ? relu
                                 : kind == Activation::kGelu ? gelu
                                                             : silu);
    }
    const Variable activated(Tensor::from(values, {4, 10}), DType::kFloat32);
    const Variable expected =
        linear(context, activated, set.find("ffn.outer.weight"), &set.find("ffn.outer.bias"));
    EXPECT_LE(relative_error(layer(context, x).value().to_vector(), expected.value().to_vector()),
              1e-6);
  }
}

TEST(FeedForward, DropsInTrainingAlone) {
  TransformerConfig config = config_of(NormPlacement::kPost);
  config.ffn_dropout = 0.5F;
  ParameterSet set;
  const FeedForward layer(set, "ffn", config);
  set.allocate(DType::kFloat32, false);
  set.initialize(1);
  const auto run = [&](bool training) {
    Context context{.training = training, .random = {1, 2, 3}};
    const Variable x(random_tensor({4, 6}, 2), DType::kFloat32);
    const std::vector<uint32_t> bits = bits_of(layer(context, x).value());
    EXPECT_EQ(context.random.op, training ? 4U : 3U) << "an op that drops takes one number";
    return bits;
  };
  EXPECT_EQ(run(false), run(false));
  EXPECT_EQ(run(true), run(true));
  EXPECT_NE(run(true), run(false));
}

// LayerNorm(x + Sublayer(x)) against x + Sublayer(LayerNorm(x)).
TEST(SublayerConnection, NormsAfterOrBefore) {
  for (const auto placement : {NormPlacement::kPost, NormPlacement::kPre}) {
    ParameterSet set;
    const SublayerConnection connection(set, "norm", config_of(placement));
    set.allocate(DType::kFloat32, false);
    set.initialize(1);
    Parameter &gain = set.find("norm.gain"), &bias = set.find("norm.bias");
    gain.master.assign(random_values(6, 1));
    bias.master.assign(random_values(6, 2));
    const Variable x(random_tensor({3, 6}, 3), DType::kFloat32);
    const auto twice = [](const Variable& in) {
      std::vector<float> values = in.value().to_vector();
      for (float& value : values) value *= 2;
      return Variable(Tensor::from(values, in.value().shape()), DType::kFloat32);
    };
    Context context;
    const Stream out = connection(context, {x, x}, twice);
    Variable expected;
    if (placement == NormPlacement::kPre) {
      const Variable normed = layer_norm(context, x, gain, bias);
      expected = residual(context, x, twice(normed), 0);
      EXPECT_FALSE(out.operand.defined());
    } else {
      expected = residual_norm(context, x, twice(x), 0, gain, bias).residual;
      EXPECT_EQ(bits_of(out.operand.value()), bits_of(expected.value()));
    }
    EXPECT_EQ(bits_of(out.residual.value()), bits_of(expected.value()));
  }
}

}  // namespace
}  // namespace attend::testing
