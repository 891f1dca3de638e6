#include "attend/models/transformer.h"

#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "tests/support/fixture.h"
#include "tests/support/models.h"
#include "tests/support/targets.h"

namespace attend::testing {
namespace {

Offsets offsets_of(const Fixture& fixture, const std::string& name) {
  const std::vector<int32_t> values = fixture.integers(name);
  return std::make_shared<const std::vector<int64_t>>(values.begin(), values.end());
}

/// A model of transformer.safetensors with its weights, and its batch.
struct FixtureModel {
  FixtureModel(const Fixture& fixture, const std::string& name, DType dtype)
      : model(config_from_json(fixture.metadata(name), name), dtype, true),
        source{fixture.integers(name + "/source"), offsets_of(fixture, name + "/source_offsets")},
        target{fixture.integers(name + "/target"), offsets_of(fixture, name + "/target_offsets")},
        target_output(fixture.integers(name + "/target_output")) {
    for (Parameter& parameter : model.parameters().parameters()) {
      EXPECT_EQ(parameter.shape, fixture.shape(name + "/weights/" + parameter.name));
      parameter.master.assign(fixture.values(name + "/weights/" + parameter.name));
    }
    model.parameters().refresh_compute();
  }

  LossSums run(Tape* tape) {
    Context context = context_for(model);
    context.tape = tape;
    model.parameters().begin_step(1);
    const float scale = 1.0F / static_cast<float>(target_output.size());
    const LossSums sums = model.loss(context, source, target, target_output, scale);
    model.parameters().add_sparse_gradients(0, 1);
    return sums;
  }

  Transformer model;
  TokenBatch source, target;
  std::vector<int32_t> target_output;
};

/// The cases of the fixture: what stands before "/loss".
std::vector<std::string> cases_of(const Fixture& fixture) {
  std::vector<std::string> found;
  for (const std::string& name : fixture.names("")) {
    if (name.ends_with("/loss")) found.push_back(name.substr(0, name.size() - 5));
  }
  return found;
}

/// Loss and gradients of one case in one dtype.
void expect_parity(const Fixture& fixture, const std::string& name, DType dtype) {
  FixtureModel fixed(fixture, name, dtype);
  Tape tape;
  const double loss = fixed.run(&tape).loss, expected = fixture.number(name + "/loss");
  EXPECT_NEAR(loss, expected, expected * (dtype == DType::kFloat32 ? 1e-6 : 1e-2));
  EXPECT_EQ(fixed.run(nullptr).loss, loss) << "the tape changes the loss";
  const std::string prefix = name + "/gradients/";
  EXPECT_EQ(fixture.names(prefix).size(), fixed.model.parameters().parameters().size());
  std::vector<float> all, all_expected;
  for (const Parameter& parameter : fixed.model.parameters().parameters()) {
    const std::vector<float> found = parameter.gradient.to_vector();
    const std::vector<float> gradient = fixture.values(prefix + parameter.name);
    // In bfloat16 a small tensor at the end of the way back holds what 2+2 layers rounded, and
    // a relu that was nearly 0 may have come out on the other side.
    EXPECT_LE(relative_error(found, gradient), dtype == DType::kFloat32 ? 1e-5 : 0.3)
        << parameter.name;
    all.insert(all.end(), found.begin(), found.end());
    all_expected.insert(all_expected.end(), gradient.begin(), gradient.end());
  }
  EXPECT_LE(relative_error(all, all_expected), dtype == DType::kFloat32 ? 3e-6 : 3e-2);
}

// Loss and all gradients of 2+2-layer models with given weights and a ragged batch, against a
// float64 model that knows neither batches nor fused ops (tests/reference/transformer.py).
TEST(Transformer, AgreesWithPyTorchInEveryGradient) {
  const Fixture fixture("transformer");
  const std::vector<std::string> cases = cases_of(fixture);
  EXPECT_EQ(cases.size(), 9U);
  for (const std::string& name : cases) {
    for (const DType dtype : compute_dtypes()) {
      SCOPED_TRACE(name + ", " + std::string(name_of(dtype)));
      for_each_instruction_set([&] { expect_parity(fixture, name, dtype); });
    }
  }
}

TEST(Transformer, InitialWeightsAreAFunctionOfTheSeed) {
  Transformer one(small_config(), DType::kFloat32, false);
  Transformer same(small_config(), DType::kFloat32, false);
  one.initialize(5);
  same.initialize(5);
  EXPECT_EQ(bits_of(one.parameters().flat_master()), bits_of(same.parameters().flat_master()));
  same.initialize(6);
  EXPECT_NE(bits_of(one.parameters().flat_master()), bits_of(same.parameters().flat_master()));
}

TEST(Transformer, AFreshModelGuessesEvenly) {
  TransformerConfig config = small_config();
  config.d_model = 48;
  config.source_vocabulary_size = config.target_vocabulary_size = 1000;
  config.tied_embeddings = TiedEmbeddings::kNone;
  for (const auto norm : {NormPlacement::kPre, NormPlacement::kPost}) {
    config.norm = norm;
    Transformer model(config, DType::kFloat32, false);
    model.initialize(1);
    Context context;
    const TokenBatch batch = batch_of(random_sentences(20, 20, 1000, 3));
    const LossSums sums = model.loss(context, batch, batch, batch.tokens, 1);
    EXPECT_NEAR(sums.nll / static_cast<double>(sums.tokens), std::log(1000.0), 1.5);
  }
}

TEST(Transformer, RefusesTokensAndLengthsThatItDoesNotKnow) {
  TransformerConfig config = small_config();
  config.max_length = 5;
  for (const auto positions : {Positions::kSinusoidal, Positions::kLearned}) {
    config.positions = positions;
    Transformer model(config, DType::kFloat32, false);
    model.initialize(1);
    Context context;
    EXPECT_NO_THROW(model.encode(context, batch_of({{0, 1, 2, 3, 18}})));
    EXPECT_THROW(model.encode(context, batch_of({{19}})), Error);
    EXPECT_THROW(model.encode(context, batch_of({{0, 1, 2, 3, 4, 5}})), Error);
  }
}

// With all kinds of dropout on and a fixed key the loss is a fixed function; its gradient is held
// against finite differences along random directions, one for each weight tensor.
TEST(Transformer, GradientsThroughDropoutAreTrue) {
  for (auto& [name, config] : kinds_of_model()) {
    SCOPED_TRACE(name);
    config.dropout = config.attention_dropout = config.ffn_dropout = 0.2F;
    config.activation = Activation::kSilu;  // no kinks to step over
    Transformer model(config, DType::kFloat32, true);
    fill_weights(model, 3);
    const TokenBatch source = batch_of(random_sentences(4, 6, 19, 1));
    const TokenBatch target = batch_of(random_sentences(4, 6, 19, 2));
    const std::vector<int32_t> output(target.tokens.rbegin(), target.tokens.rend());
    const auto loss = [&](Tape* tape) {
      Context context = context_for(model);
      context.tape = tape;
      context.training = true;
      context.random = {42, 1, 0};
      return model.loss(context, source, target, output, 1).loss;
    };
    Tape tape;
    model.parameters().begin_step(1);
    const double with_tape = loss(&tape);
    model.parameters().add_sparse_gradients(0, 1);
    EXPECT_EQ(with_tape, loss(nullptr));
    std::vector<double> expected, found;
    uint64_t seed = 100;
    for (Parameter& parameter : model.parameters().parameters()) {
      const std::vector<float> middle = parameter.master.to_vector();
      const std::vector<float> gradient = parameter.gradient.to_vector();
      const std::vector<float> direction = random_values(parameter.master.count(), ++seed);
      const auto loss_at = [&](float step) {
        std::vector<float> moved = middle;
        for (std::size_t i = 0; i < moved.size(); ++i) moved[i] += step * direction[i];
        parameter.master.assign(moved);
        const double value = loss(nullptr);
        parameter.master.assign(middle);
        return value;
      };
      constexpr float kStep = 1e-3F;
      expected.push_back((loss_at(kStep) - loss_at(-kStep)) / (2 * static_cast<double>(kStep)));
      double sum = 0;
      for (std::size_t i = 0; i < direction.size(); ++i) {
        sum += static_cast<double>(gradient[i]) * static_cast<double>(direction[i]);
      }
      found.push_back(sum);
    }
    EXPECT_LE(relative_error(found, expected), 1e-2);
  }
}

TEST(Transformer, DropoutChangesTheLossInTrainingAlone) {
  TransformerConfig config = small_config();
  config.dropout = 0.3F;
  Transformer model(config, DType::kFloat32, false);
  fill_weights(model, 3);
  const TokenBatch batch = batch_of(random_sentences(4, 6, 19, 1));
  const auto loss = [&](bool training, RandomKey key) {
    Context context = context_for(model);
    context.training = training;
    context.random = key;
    return model.loss(context, batch, batch, batch.tokens, 1).loss;
  };
  EXPECT_EQ(loss(false, {1, 0, 0}), loss(false, {2, 0, 0}));
  EXPECT_EQ(loss(true, {1, 0, 0}), loss(true, {1, 0, 0}));
  EXPECT_NE(loss(true, {1, 0, 0}), loss(true, {2, 0, 0}));
  EXPECT_NE(loss(true, {1, 0, 0}), loss(true, {1, 1, 0}));
}

}  // namespace
}  // namespace attend::testing
