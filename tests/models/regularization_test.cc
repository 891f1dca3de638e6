// R-Drop, layer drop and word dropout in whole models.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tests/support/models.h"

namespace attend::testing {
namespace {

struct Pass {
  LossSums sums;
  std::vector<float> gradient;
  std::map<std::string, bool> touched;  ///< parameters with a gradient that is not 0
};

Pass run_pass(Transformer& model, const Regularization& regularization, uint64_t seed = 3,
              uint32_t lane = 0) {
  model.parameters().flat_gradient().zero();
  model.parameters().begin_step(1);
  const TokenBatch source = batch_of(random_sentences(6, 9, 19, 1));
  const TokenBatch target = batch_of(random_sentences(6, 9, 19, 2));
  Tape tape;
  Context context = context_for(model);
  context.tape = &tape;
  context.training = true;
  context.regularization = regularization;
  context.random = {seed, lane, 0};
  Pass pass;
  pass.sums = model.loss(context, source, target, target.tokens, 0.1F);
  model.parameters().add_sparse_gradients(0, 1);
  pass.gradient = model.parameters().flat_gradient().to_vector();
  for (const Parameter& parameter : model.parameters().parameters()) {
    const std::vector<float> values = parameter.gradient.to_vector();
    pass.touched[parameter.name] =
        std::any_of(values.begin(), values.end(), [](float value) { return value != 0; });
  }
  return pass;
}

Transformer& filled(Transformer& model) {
  fill_weights(model, 2);
  return model;
}

TEST(RDrop, TwoEqualPassesAreOne) {
  for (const auto& [name, config] : kinds_of_model()) {
    SCOPED_TRACE(name);
    Transformer model(config, DType::kFloat32, true);
    const Pass one = run_pass(filled(model), {}), two = run_pass(model, {.r_drop = 5});
    EXPECT_EQ(two.sums.divergence, 0.0);
    EXPECT_NEAR(two.sums.loss, one.sums.loss, 1e-9 * one.sums.loss);
    EXPECT_EQ(two.sums.tokens, one.sums.tokens) << "every token counts once";
    EXPECT_LE(relative_error(two.gradient, one.gradient), 1e-5);
  }
}

// Everything that is drawn is drawn anew for the second pass.
TEST(RDrop, EveryKindOfDropoutMakesThePassesDiffer) {
  using Change = void (*)(TransformerConfig&, Regularization&);
  for (const Change change : {
           Change([](TransformerConfig&c, Regularization&) { c.dropout = 0.2F; }),
           Change([](TransformerConfig&c, Regularization&) { c.attention_dropout = 0.2F; }),
           Change([](TransformerConfig&c, Regularization&) { c.ffn_dropout = 0.2F; }),
           Change([](TransformerConfig&c, Regularization&) { c.embedding_dropout = 0.2F; }),
           Change([](TransformerConfig&, Regularization&r) { r.source_word_dropout = 0.2F; }),
           Change([](TransformerConfig&, Regularization&r) { r.target_word_dropout = 0.2F; }),
       }) {
    TransformerConfig config = small_config();
    Regularization regularization{.r_drop = 1};
    change(config, regularization);
    Transformer model(config, DType::kFloat32, true);
    EXPECT_GT(run_pass(filled(model), regularization).sums.divergence, 1e-3);
  }
}

// Whatever layers are left out: those have no gradient, all else has one, and where the decoder
// reads nothing of the source the encoder has none either.
TEST(LayerDrop, LayersLeftOutHaveNoGradient) {
  for (auto& [name, config] : kinds_of_model()) {
    SCOPED_TRACE(name);
    config.dropout = 0.1F;
    Transformer model(config, DType::kFloat32, true);
    fill_weights(model, 2);
    std::set<std::vector<bool>> seen;
    for (uint64_t seed = 0; seed < 30; ++seed) {
      const Pass pass = run_pass(model, {.layer_drop = 0.5F}, seed);
      EXPECT_TRUE(std::isfinite(pass.sums.loss));
      const auto ran = [&](const std::string& layer) {
        const bool touched = pass.touched.at(layer + ".feed_forward.outer.weight");
        for (const auto& [parameter, with_gradient] : pass.touched) {
          if (parameter.starts_with(layer + ".") && !parameter.ends_with("bias")) {
            EXPECT_EQ(with_gradient, touched) << parameter;
          }
        }
        return touched;
      };
      const bool decoder_0 = ran("decoder.layers.0"), decoder_1 = ran("decoder.layers.1");
      const bool encoder_0 = ran("encoder.layers.0"), encoder_1 = ran("encoder.layers.1");
      if (!decoder_0 && !decoder_1) {
        EXPECT_FALSE(encoder_0 || encoder_1);
      }
      seen.insert({encoder_0, encoder_1, decoder_0, decoder_1});
    }
    EXPECT_GE(seen.size(), 8U) << "layers are drawn one by one";
  }
}

TEST(LayerDrop, IsTheSameInAllLanes) {
  Transformer model(small_config(), DType::kFloat32, true);
  fill_weights(model, 2);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const auto touched = run_pass(model, {.layer_drop = 0.5F}, seed, 0).touched;
    for (const uint32_t lane : {1, 7}) {
      EXPECT_EQ(run_pass(model, {.layer_drop = 0.5F}, seed, lane).touched, touched);
    }
  }
}

TEST(Regularization, IsOfTrainingAlone) {
  Transformer model(small_config(), DType::kFloat32, false);
  fill_weights(model, 2);
  const TokenBatch batch = batch_of(random_sentences(6, 9, 19, 1));
  Context plain = context_for(model), regular = plain;
  regular.regularization = {5, 0.5F, 0.5F, 0.5F};
  const LossSums expected = model.loss(plain, batch, batch, batch.tokens, 1);
  const LossSums found = model.loss(regular, batch, batch, batch.tokens, 1);
  EXPECT_EQ(found.loss, expected.loss);
  EXPECT_EQ(found.divergence, 0.0);
}

}  // namespace
}  // namespace attend::testing
