#include "attend/nn/encoder_decoder.h"

#include <gtest/gtest.h>

#include "tests/support/numbers.h"

namespace attend::testing {
namespace {

TransformerConfig config_of(NormPlacement norm) {
  TransformerConfig config;
  config.d_model = 6;
  config.d_ff = 10;
  config.heads = 3;
  config.d_k = 5;
  config.d_v = 7;
  config.dropout = 0.25F;
  config.norm = norm;
  return config;
}

Offsets share(std::vector<int64_t> offsets) {
  return std::make_shared<const std::vector<int64_t>>(std::move(offsets));
}

void fill(ParameterSet& set) {
  set.allocate(DType::kFloat32, true);
  uint64_t seed = 0;
  for (Parameter& parameter : set.parameters()) {
    parameter.master.assign(random_values(parameter.master.count(), ++seed, 0.5F));
  }
}

Stream input(uint64_t seed) {
  const Variable x(random_tensor({3, 6}, seed), DType::kFloat32);
  return {x, x};
}

TEST(EncoderLayer, DropsAfterBothSublayers) {
  for (const auto norm : {NormPlacement::kPost, NormPlacement::kPre}) {
    ParameterSet set;
    const EncoderLayer layer(set, "layer", config_of(norm));
    fill(set);
    Context context{.training = true, .random = {1, 0, 0}};
    const Offsets offsets = share({0, 3});
    layer(context, input(1), offsets, nullptr);
    EXPECT_EQ(context.random.op, 2U);
  }
}

TEST(DecoderLayer, DropsAfterAllThreeSublayers) {
  for (const auto norm : {NormPlacement::kPost, NormPlacement::kPre}) {
    ParameterSet set;
    const DecoderLayer layer(set, "layer", config_of(norm));
    fill(set);
    Context context{.training = true, .random = {1, 0, 0}};
    const Offsets offsets = share({0, 1, 3});
    const EncoderOutput memory{input(2).operand, share({0, 2, 3})};
    layer(context, input(1), offsets, nullptr, memory);
    EXPECT_EQ(context.random.op, 3U);
  }
}

// The gradient of the memory is the sum of what all decoder layers ask of it.
TEST(DecoderLayer, AddsItsPartToTheGradientOfTheMemory) {
  ParameterSet set;
  TransformerConfig config = config_of(NormPlacement::kPost);
  config.dropout = 0;
  const DecoderLayer layer(set, "layer", config);
  fill(set);
  const Tensor upstream = random_tensor({3, 6}, 8);
  const auto gradient_of_memory = [&](int times) {
    Tape tape;
    Context context{.tape = &tape};
    set.begin_step(1);
    const Variable memory(random_tensor({3, 6}, 2), DType::kFloat32);
    for (int i = 0; i < times; ++i) {
      const Stream out =
          layer(context, input(1), share({0, 1, 3}), nullptr, {memory, share({0, 2, 3})});
      const Tensor copy({3, 6}, DType::kFloat32);
      copy.assign(upstream.to_vector());
      out.residual.give_gradient(copy);
    }
    tape.backward();
    tape.finish(set);
    return memory.gradient().to_vector();
  };
  const std::vector<float> twice = gradient_of_memory(2);
  std::vector<float> once = gradient_of_memory(1);
  for (float& value : once) value *= 2;
  EXPECT_LE(relative_error(twice, once), 1e-6);
}

TEST(StackOutput, PreNormHasOneMoreNorm) {
  ParameterSet post, pre;
  const StackOutput plain(post, "norm", config_of(NormPlacement::kPost));
  const StackOutput normed(pre, "norm", config_of(NormPlacement::kPre));
  EXPECT_TRUE(post.parameters().empty());
  EXPECT_EQ(pre.parameters().size(), 2U);
  fill(pre);
  Context context;
  const Stream x = input(1);
  EXPECT_EQ(bits_of(plain(context, x).value()), bits_of(x.operand.value()));
  EXPECT_EQ(
      bits_of(normed(context, {x.residual, {}}).value()),
      bits_of(
          layer_norm(context, x.residual, pre.find("norm.gain"), pre.find("norm.bias")).value()));
}

}  // namespace
}  // namespace attend::testing
