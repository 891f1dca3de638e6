// Values and gradients of every op against PyTorch in float64 (tests/reference/ops_fixture.py).
#include <gtest/gtest.h>

#include "attend/kernels/embedding.h"
#include "tests/autograd/op_harness.h"

namespace attend::testing {
namespace {

const Fixture& fixture() {
  static const Fixture loaded("ops");
  return loaded;
}

/// The inputs that the fixture has for a case; `parameters` and `wide` (float32) name the special
/// ones, the others are operands.
OpCase case_of(const std::string& name, const std::vector<std::string>& parameters,
               const std::vector<std::string>& wide = {}) {
  OpCase op;
  for (const std::string& gradient : fixture().names(name + "/d_")) {
    if (gradient == "out") continue;
    const Tensor values = fixture().tensor(name + "/" + gradient);
    if (std::find(parameters.begin(), parameters.end(), gradient) != parameters.end()) {
      op.parameters[gradient] = values;
    } else {
      const bool operand = std::find(wide.begin(), wide.end(), gradient) == wide.end();
      op.inputs[gradient] = {values, operand};
    }
  }
  op.upstream = {fixture().tensor(name + "/d_out")};
  return op;
}

void use_dropout(OpCase& op, uint64_t seed, uint32_t lane) {
  op.training = true;
  op.random = {seed, lane, 0};
}

/// Names of the fixture's cases of one op.
std::vector<std::string> cases_of(const std::string& op) {
  std::vector<std::string> found;
  for (const std::string& name : fixture().names(op + "/")) {
    if (name.ends_with("/d_out")) found.push_back(name.substr(0, name.size() - 6));
  }
  EXPECT_FALSE(found.empty()) << op;
  return found;
}

TEST(OpsFixture, Linear) {
  for (const std::string& name : cases_of("linear")) {
    OpCase op = case_of("linear/" + name, {"weight", "bias"});
    op.run = [&](OpRun& run) -> std::vector<Variable> {
      Parameter* bias = run.parameters.contains("bias") ? &run.parameter("bias") : nullptr;
      return {linear(run.context, run.variable("x"), run.parameter("weight"), bias)};
    };
    expect_fixture(fixture(), "linear/" + name, op);
  }
}

TEST(OpsFixture, Activation) {
  const std::map<std::string, ActivationKind> kinds = {{"relu", ActivationKind::kRelu},
                                                       {"gelu", ActivationKind::kGelu},
                                                       {"silu", ActivationKind::kSilu}};
  for (const std::string& name : cases_of("activation")) {
    OpCase op = case_of("activation/" + name, {});
    if (name.ends_with("dropout")) use_dropout(op, 0x123456789ABCDEF, 5);
    const ActivationKind kind = kinds.at(name.substr(0, 4));
    op.run = [&](OpRun& run) -> std::vector<Variable> {
      return {activation(run.context, run.variable("x"), kind, 0.3F)};
    };
    expect_fixture(fixture(), "activation/" + name, op);
  }
}

TEST(OpsFixture, LayerNorm) {
  for (const std::string& name : cases_of("layer_norm")) {
    OpCase op = case_of("layer_norm/" + name, {"gain", "bias"}, {"x"});
    op.run = [&](OpRun& run) -> std::vector<Variable> {
      return {
          layer_norm(run.context, run.variable("x"), run.parameter("gain"), run.parameter("bias"))};
    };
    expect_fixture(fixture(), "layer_norm/" + name, op);
  }
}

TEST(OpsFixture, Residual) {
  for (const std::string& name : cases_of("residual")) {
    OpCase op = case_of("residual/" + name, {}, {"x"});
    if (name.ends_with("dropout")) use_dropout(op, 99, 2);
    op.run = [&](OpRun& run) -> std::vector<Variable> {
      return {residual(run.context, run.variable("x"), run.variable("y"), 0.25F)};
    };
    expect_fixture(fixture(), "residual/" + name, op);
  }
}

/// Both forms of a stream take half of the gradient; in float32 they are one.
void halve_upstream(OpCase& op) {
  const Tensor half = op.upstream[0];
  for (int64_t i = 0; i < half.count(); ++i) half.data<float>()[i] *= 0.5F;
  op.upstream = {half, half};
}

TEST(OpsFixture, ResidualNorm) {
  for (const std::string& name : cases_of("residual_norm")) {
    OpCase op = case_of("residual_norm/" + name, {"gain", "bias"}, {"x"});
    if (name.ends_with("dropout")) use_dropout(op, 99, 2);
    halve_upstream(op);
    op.run = [&](OpRun& run) -> std::vector<Variable> {
      const Stream out = residual_norm(run.context, run.variable("x"), run.variable("y"), 0.25F,
                                       run.parameter("gain"), run.parameter("bias"));
      return {out.residual, out.operand};
    };
    expect_fixture(fixture(), "residual_norm/" + name, op);
  }
}

TEST(OpsFixture, Embedding) {
  const Tensor sines = sinusoidal_positions(40, 10);
  for (const std::string& name : cases_of("embedding")) {
    const std::string full = "embedding/" + name;
    OpCase op = case_of(full, {"table", "positions"});
    if (name == "learned") use_dropout(op, 7, 0);
    halve_upstream(op);
    EmbeddingInput input{
        fixture().integers(full + "/ids"), offsets_from(fixture(), full + "/offsets"), {}};
    if (name == "later") {
      const std::vector<int32_t> first = fixture().integers(full + "/first_positions");
      input.first_positions.assign(first.begin(), first.end());
    }
    if (name == "factors") input.factors = fixture().values(full + "/factors");
    op.run = [&](OpRun& run) -> std::vector<Variable> {
      const bool learned = run.parameters.contains("positions");
      const bool fixed = name == "sinusoidal" || name == "later";
      const Stream out = embedding(run.context, input, run.parameter("table"), std::sqrt(10.0F),
                                   fixed ? sines : Tensor(),
                                   learned ? &run.parameter("positions") : nullptr, 0.4F, true);
      return {out.residual, out.operand};
    };
    expect_fixture(fixture(), full, op);
  }
}

AttentionSettings settings_of(const std::string& name, const OpRun& run) {
  const auto number = [&](const std::string& key) {
    return static_cast<int64_t>(fixture().integers(name + key).at(0));
  };
  AttentionSettings settings;
  settings.heads = number("/heads");
  settings.key_width = number("/key_width");
  settings.value_width = number("/value_width");
  settings.query_offsets = settings.key_offsets = offsets_from(fixture(), name + "/offsets");
  if (run.parameters.contains("score_vector")) {
    settings.score_vector = &run.parameter("score_vector");
  } else {
    settings.scale = 1.0F / std::sqrt(static_cast<float>(settings.key_width));
  }
  return settings;
}

TEST(OpsFixture, SelfAttention) {
  for (const std::string& name : cases_of("self_attention")) {
    const std::string full = "self_attention/" + name;
    OpCase op = case_of(full, {"score_vector"});
    op.run = [&](OpRun& run) -> std::vector<Variable> {
      AttentionSettings settings = settings_of(full, run);
      settings.causal = name.ends_with("causal");
      return {self_attention(run.context, settings, run.variable("qkv"))};
    };
    expect_fixture(fixture(), full, op);
  }
}

TEST(OpsFixture, CrossAttention) {
  for (const std::string& name : cases_of("cross_attention")) {
    const std::string full = "cross_attention/" + name;
    OpCase op = case_of(full, {"score_vector"});
    op.run = [&](OpRun& run) -> std::vector<Variable> {
      AttentionSettings settings = settings_of(full, run);
      settings.key_offsets = offsets_from(fixture(), full + "/memory_offsets");
      return {cross_attention(run.context, settings, run.variable("q"), run.variable("kv"))};
    };
    expect_fixture(fixture(), full, op);
  }
}

TEST(OpsFixture, Rotate) {
  for (const std::string& name : cases_of("rotate")) {
    const std::string full = "rotate/" + name;
    OpCase op = case_of(full, {});
    const auto positions =
        std::make_shared<const std::vector<int32_t>>(fixture().integers(full + "/positions"));
    op.run = [&](OpRun& run) -> std::vector<Variable> {
      const Variable& x = run.variable("x");
      rotate(run.context, x, positions, x.value().columns() - 3,
             fixture().integers(full + "/heads").at(0));
      return {x};
    };
    expect_fixture(fixture(), full, op);
  }
}

/// The cases of one kind of loss: what stands before "/loss".
std::vector<std::string> losses_of(const std::string& kind) {
  std::vector<std::string> found;
  for (const std::string& entry : fixture().names(kind + "/")) {
    if (entry.ends_with("/loss")) found.push_back(kind + "/" + entry.substr(0, entry.size() - 5));
  }
  return found;
}

void expect_loss_fixture(const std::string& name, float smoothing, float r_drop, DType dtype) {
  SCOPED_TRACE(name + ", " + std::string(name_of(dtype)));
  const std::vector<int32_t> targets = fixture().integers(name + "/targets");
  OpCase op;
  op.inputs["hidden"] = {fixture().tensor(name + "/hidden"), true};
  op.parameters["table"] = fixture().tensor(name + "/table");
  LossSums sums;
  op.run = [&](OpRun& run) -> std::vector<Variable> {
    sums = project_cross_entropy(run.context, run.variable("hidden"), run.parameter("table"),
                                 targets, smoothing, 0.37F, r_drop);
    return {};
  };
  play(op, dtype, false);
  const LossSums silent = sums;
  const OpResult played = play(op, dtype, true);
  EXPECT_EQ(silent.loss, sums.loss);
  EXPECT_EQ(silent.correct, sums.correct);
  EXPECT_EQ(sums.tokens, static_cast<int64_t>(targets.size()));
  const double loss = fixture().number(name + "/loss"), nll = fixture().number(name + "/nll");
  EXPECT_NEAR(sums.loss, loss, tolerance(dtype) * loss);
  EXPECT_NEAR(sums.nll, nll, tolerance(dtype) * nll);
  const double divergence = r_drop > 0 ? fixture().number(name + "/divergence") : 0;
  EXPECT_NEAR(sums.divergence, divergence, tolerance(dtype) * divergence);
  for (const auto& [input, gradient] : played.gradients) {
    EXPECT_LE(relative_error(gradient, fixture().values(name + "/d_" + input)), tolerance(dtype))
        << "gradient of " << input;
  }
}

TEST(OpsFixture, ProjectCrossEntropy) {
  const std::vector<std::string> cases = losses_of("project_cross_entropy");
  EXPECT_EQ(cases.size(), 6U);
  for (const std::string& name : cases) {
    for (const DType dtype : compute_dtypes()) {
      expect_loss_fixture(name, name.ends_with("0.1") ? 0.1F : 0.0F, 0, dtype);
    }
  }
}

TEST(OpsFixture, RDrop) {
  const std::vector<std::string> cases = losses_of("r_drop");
  EXPECT_EQ(cases.size(), 3U);
  for (const std::string& name : cases) {
    for (const DType dtype : compute_dtypes()) expect_loss_fixture(name, 0.1F, 5, dtype);
  }
}

}  // namespace
}  // namespace attend::testing
