// Every gradient against central finite differences in float32, with dropout on as well: a fixed
// key makes an op with dropout a fixed function.
#include <gtest/gtest.h>

#include "attend/kernels/embedding.h"
#include "tests/autograd/op_harness.h"

namespace attend::testing {
namespace {

Tensor normal_tensor(const Shape& shape) {
  static uint64_t seed = 1000;
  return random_tensor(shape, ++seed);
}

OpCase::Input operand(const Shape& shape) { return {normal_tensor(shape), true}; }
OpCase::Input wide(const Shape& shape) { return {normal_tensor(shape), false}; }

/// Checks the op as it is and with dropout drawn.
void expect_true_gradients_with_and_without_dropout(OpCase op) {
  expect_true_gradients(op);
  SCOPED_TRACE("with dropout");
  op.training = true;
  op.random = {77, 3, 2};
  expect_true_gradients(op);
  const OpResult dropped = play(op, DType::kFloat32, true);
  op.training = false;
  EXPECT_NE(dropped.outputs, play(op, DType::kFloat32, true).outputs);
}

TEST(Gradients, Linear) {
  for (const int64_t rows : {1, 2, 5}) {
    OpCase op;
    op.inputs["x"] = operand({rows, 7});
    op.parameters = {{"weight", normal_tensor({3, 7})}, {"bias", normal_tensor({3})}};
    op.upstream = {normal_tensor({rows, 3})};
    op.run = [](OpRun& run) -> std::vector<Variable> {
      return {
          linear(run.context, run.variable("x"), run.parameter("weight"), &run.parameter("bias"))};
    };
    expect_true_gradients(op);
  }
}

TEST(Gradients, SharedWeightAndInput) {
  OpCase op;  // x is read twice, and so is the weight
  op.inputs["x"] = operand({4, 5});
  op.parameters["weight"] = normal_tensor({5, 5});
  op.upstream = {normal_tensor({4, 5}), normal_tensor({4, 5})};
  op.run = [](OpRun& run) -> std::vector<Variable> {
    Parameter& weight = run.parameter("weight");
    const Variable once = linear(run.context, run.variable("x"), weight, nullptr);
    return {linear(run.context, once, weight, nullptr),
            linear(run.context, run.variable("x"), weight, nullptr)};
  };
  expect_true_gradients(op);
}

TEST(Gradients, Activation) {
  for (const auto kind : {ActivationKind::kRelu, ActivationKind::kGelu, ActivationKind::kSilu}) {
    OpCase op;
    op.inputs["x"] = operand({4, 37});
    float* x = op.inputs["x"].values.data<float>();
    for (int64_t i = 0; i < 4 * 37; ++i) {  // away from relu's kink
      if (std::abs(x[i]) < 0.02F) x[i] = 0.1F;
    }
    op.upstream = {normal_tensor({4, 37})};
    op.run = [kind](OpRun& run) -> std::vector<Variable> {
      return {activation(run.context, run.variable("x"), kind, 0.4F)};
    };
    expect_true_gradients_with_and_without_dropout(op);
  }
}

TEST(Gradients, LayerNorm) {
  for (const int64_t columns : {3, 6, 19}) {
    OpCase op;
    op.inputs["x"] = wide({3, columns});
    op.parameters = {{"gain", normal_tensor({columns})}, {"bias", normal_tensor({columns})}};
    op.upstream = {normal_tensor({3, columns})};
    op.run = [](OpRun& run) -> std::vector<Variable> {
      return {
          layer_norm(run.context, run.variable("x"), run.parameter("gain"), run.parameter("bias"))};
    };
    expect_true_gradients(op, 3e-3F);
  }
}

TEST(Gradients, Residual) {
  OpCase op;
  op.inputs = {{"x", wide({3, 21})}, {"y", operand({3, 21})}};
  op.upstream = {normal_tensor({3, 21})};
  op.run = [](OpRun& run) -> std::vector<Variable> {
    return {residual(run.context, run.variable("x"), run.variable("y"), 0.4F)};
  };
  expect_true_gradients_with_and_without_dropout(op);
}

TEST(Gradients, ResidualNorm) {
  OpCase op;
  op.inputs = {{"x", wide({3, 21})}, {"y", operand({3, 21})}};
  op.parameters = {{"gain", normal_tensor({21})}, {"bias", normal_tensor({21})}};
  op.upstream = {normal_tensor({3, 21}), normal_tensor({3, 21})};
  op.run = [](OpRun& run) -> std::vector<Variable> {
    const Stream out = residual_norm(run.context, run.variable("x"), run.variable("y"), 0.4F,
                                     run.parameter("gain"), run.parameter("bias"));
    return {out.residual, out.operand};
  };
  expect_true_gradients_with_and_without_dropout(op);
}

TEST(Gradients, ResidualThatIsReadTwice) {
  OpCase op;  // pre-norm's shape: x goes to the norm and around it
  op.inputs["x"] = wide({4, 9});
  op.parameters = {{"gain", normal_tensor({9})}, {"bias", normal_tensor({9})}};
  op.upstream = {normal_tensor({4, 9})};
  op.run = [](OpRun& run) -> std::vector<Variable> {
    const Variable& x = run.variable("x");
    const Variable y = layer_norm(run.context, x, run.parameter("gain"), run.parameter("bias"));
    return {residual(run.context, x, y, 0.4F)};
  };
  expect_true_gradients_with_and_without_dropout(op);
}

TEST(Gradients, Embedding) {
  const Tensor sines = sinusoidal_positions(12, 6);
  for (const bool learned : {false, true}) {
    OpCase op;
    op.parameters["table"] = normal_tensor({5, 6});
    if (learned) op.parameters["positions"] = normal_tensor({12, 6});
    op.upstream = {normal_tensor({6, 6}), normal_tensor({6, 6})};
    const EmbeddingInput input{.ids = {1, 4, 1, 0, 1, 2},
                               .offsets = share({0, 3, 4, 6}),
                               .first_positions = {0, 9, 2},
                               .factors = {1.5F, 0, 1, 1.5F, 1.5F, 1.5F}};
    op.run = [=](OpRun& run) -> std::vector<Variable> {
      const Stream out = embedding(run.context, input, run.parameter("table"), 2.5F, sines,
                                   learned ? &run.parameter("positions") : nullptr, 0.4F, true);
      return {out.residual, out.operand};
    };
    expect_true_gradients_with_and_without_dropout(op);
  }
}

struct Heads {
  int64_t heads, key_width, value_width;
  bool additive;
};
const Heads kHeads[] = {
    {1, 1, 1, false}, {3, 5, 7, false}, {2, 4, 4, false}, {3, 5, 7, true}, {2, 4, 1, true}};

AttentionSettings settings_of(const Heads& shape, const OpRun& run) {
  AttentionSettings settings;
  settings.heads = shape.heads;
  settings.key_width = shape.key_width;
  settings.value_width = shape.value_width;
  settings.dropout = 0.3F;
  settings.scale = 0.6F;
  if (shape.additive) settings.score_vector = &run.parameter("score_vector");
  return settings;
}

TEST(Gradients, SelfAttention) {
  for (const Heads& shape : kHeads) {
    for (const bool causal : {false, true}) {
      OpCase op;
      const int64_t width = shape.heads * (2 * shape.key_width + shape.value_width);
      op.inputs["qkv"] = operand({7, width});
      if (shape.additive) {
        op.parameters["score_vector"] = normal_tensor({shape.heads, shape.key_width});
      }
      op.upstream = {normal_tensor({7, shape.heads * shape.value_width})};
      op.run = [=](OpRun& run) -> std::vector<Variable> {
        AttentionSettings settings = settings_of(shape, run);
        settings.causal = causal;
        settings.query_offsets = settings.key_offsets = share({0, 4, 5, 7});
        return {self_attention(run.context, settings, run.variable("qkv"))};
      };
      expect_true_gradients_with_and_without_dropout(op);
    }
  }
}

TEST(Gradients, CrossAttention) {
  for (const Heads& shape : kHeads) {
    OpCase op;
    const int64_t keys = shape.heads * shape.key_width, values = shape.heads * shape.value_width;
    op.inputs = {{"q", operand({4, keys})}, {"kv", operand({7, keys + values})}};
    if (shape.additive) {
      op.parameters["score_vector"] = normal_tensor({shape.heads, shape.key_width});
    }
    op.upstream = {normal_tensor({4, values})};
    op.run = [=](OpRun& run) -> std::vector<Variable> {
      AttentionSettings settings = settings_of(shape, run);
      settings.query_offsets = share({0, 1, 4});
      settings.key_offsets = share({0, 5, 7});
      return {cross_attention(run.context, settings, run.variable("q"), run.variable("kv"))};
    };
    expect_true_gradients_with_and_without_dropout(op);
  }
}

TEST(Gradients, Rotate) {
  OpCase op;
  op.inputs["x"] = operand({4, 14});
  op.upstream = {normal_tensor({4, 14})};
  const auto positions =
      std::make_shared<const std::vector<int32_t>>(std::vector<int32_t>{0, 1, 5, 900});
  op.run = [=](OpRun& run) -> std::vector<Variable> {
    rotate(run.context, run.variable("x"), positions, 12, 3);
    return {run.variable("x")};
  };
  expect_true_gradients(op);
}

TEST(Gradients, ProjectCrossEntropy) {
  for (const auto& [smoothing, r_drop] : {std::pair(0.0F, 0.0F), {0.2F, 0.0F}, {0.2F, 3.0F}}) {
    SCOPED_TRACE(fmt::format("smoothing {}, R-Drop {}", smoothing, r_drop));
    OpCase op;
    const std::vector<int32_t> targets = {0, 8, 3, 3, 5};
    op.inputs["hidden"] = operand({r_drop > 0 ? 10 : 5, 6});
    op.parameters["table"] = normal_tensor({9, 6});
    LossSums sums;
    op.run = [&](OpRun& run) -> std::vector<Variable> {
      sums = project_cross_entropy(run.context, run.variable("hidden"), run.parameter("table"),
                                   targets, smoothing, 0.5F, r_drop);
      return {};
    };
    const OpResult played = play(op, DType::kFloat32, true);
    const auto scaled_loss = [&] {
      play(op, DType::kFloat32, false);
      return 0.5 * (sums.loss + static_cast<double>(r_drop) / 2 * sums.divergence);
    };
    EXPECT_LE(relative_error(played.gradients.at("hidden"),
                             central_differences(op.inputs["hidden"].values, 1e-2F, scaled_loss)),
              1e-2);
    EXPECT_LE(relative_error(played.gradients.at("table"),
                             central_differences(op.parameters["table"], 1e-2F, scaled_loss)),
              1e-2);
  }
}

}  // namespace
}  // namespace attend::testing
