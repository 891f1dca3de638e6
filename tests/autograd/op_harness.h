#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "attend/autograd/ops.h"
#include "tests/support/fixture.h"
#include "tests/support/numbers.h"

namespace attend::testing {

/// What an op runs on: variables and parameters by name, and how.
struct OpRun {
  Context context;
  std::map<std::string, Variable> variables;
  std::map<std::string, Parameter*> parameters;

  const Variable& variable(const std::string& name) const { return variables.at(name); }
  Parameter& parameter(const std::string& name) const { return *parameters.at(name); }
};

/// One op with its inputs. `run` gives the outputs; in float32 two of them may be one variable.
struct OpCase {
  struct Input {
    Tensor values;  ///< float32
    bool operand;   ///< in the compute dtype; else float32
  };
  std::map<std::string, Input> inputs;
  std::map<std::string, Tensor> parameters;  ///< float32
  std::vector<Tensor> upstream;              ///< float32, the gradient of each output
  std::function<std::vector<Variable>(OpRun&)> run;
  bool training = false;
  RandomKey random;
};

/// Outputs, and gradients by the name of what they belong to.
struct OpResult {
  std::vector<std::vector<float>> outputs;
  std::map<std::string, std::vector<float>> gradients;
};

inline OpResult play(const OpCase& op, DType compute, bool with_tape) {
  ParameterSet set;
  OpRun run;
  for (const auto& [name, values] : op.parameters) {
    run.parameters[name] = &set.add(name, values.shape(), constant(0));
  }
  set.allocate(compute, true);
  for (const auto& [name, values] : op.parameters) {
    run.parameters[name]->master.assign(values.to_vector());
  }
  set.refresh_compute();
  set.begin_step(1);
  for (const auto& [name, input] : op.inputs) {
    const DType dtype = input.operand ? compute : DType::kFloat32;
    const Tensor copy(input.values.shape(), dtype);
    copy.assign(input.values.to_vector());
    run.variables[name] = Variable(copy, dtype);
  }
  Tape tape;
  run.context.tape = with_tape ? &tape : nullptr;
  run.context.compute = compute;
  run.context.training = op.training;
  run.context.random = op.random;

  const std::vector<Variable> outputs = op.run(run);
  OpResult result;
  for (const Variable& output : outputs) result.outputs.push_back(output.value().to_vector());
  if (!with_tape) return result;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& upstream = op.upstream.at(i);
    if (outputs[i].gradient().defined()) {
      outputs[i].give_gradient(upstream);
    } else {
      outputs[i].gradient_sink(*run.context.memory).tensor.assign(upstream.to_vector());
    }
  }
  tape.backward();
  tape.finish(set);
  set.add_sparse_gradients(0, 1);
  for (const auto& [name, variable] : run.variables) {
    result.gradients[name] = variable.gradient().to_vector();
  }
  for (const auto& [name, parameter] : run.parameters) {
    result.gradients[name] = parameter->gradient.to_vector();
  }
  return result;
}

/// Σ upstream · output, without a tape.
inline double weighed_sum(const OpCase& op) {
  const OpResult result = play(op, DType::kFloat32, false);
  double sum = 0;
  for (std::size_t i = 0; i < result.outputs.size(); ++i) {
    const std::vector<float> upstream = op.upstream.at(i).to_vector();
    for (std::size_t j = 0; j < upstream.size(); ++j) {
      sum += static_cast<double>(upstream[j]) * static_cast<double>(result.outputs[i][j]);
    }
  }
  return sum;
}

/// Central differences of `loss` over each element of `values`.
inline std::vector<double> central_differences(const Tensor& values, float step,
                                               const std::function<double()>& loss) {
  std::vector<double> differences;
  float* element = values.data<float>();
  for (int64_t i = 0; i < values.count(); ++i, ++element) {
    const float middle = *element, above = middle + step, below = middle - step;
    *element = above;
    const double high = loss();
    *element = below;
    const double low = loss();
    *element = middle;
    differences.push_back((high - low) / static_cast<double>(above - below));
  }
  return differences;
}

/// Every gradient of the op against central finite differences, in float32.
inline void expect_true_gradients(const OpCase& op, float step = 1e-2F) {
  const OpResult played = play(op, DType::kFloat32, true);
  const auto check = [&](const std::string& name, const Tensor& values) {
    const auto expected = central_differences(values, step, [&] { return weighed_sum(op); });
    EXPECT_LE(relative_error(played.gradients.at(name), expected), 1e-2) << "gradient of " << name;
  };
  for (const auto& [name, input] : op.inputs) check(name, input.values);
  for (const auto& [name, values] : op.parameters) check(name, values);
}

/// The value and every gradient of the op against a case of ops.safetensors. Where the op has two
/// outputs, each takes half the gradient.
inline void expect_fixture(const Fixture& fixture, const std::string& name, const OpCase& op) {
  for (const DType dtype : compute_dtypes()) {
    SCOPED_TRACE(name + ", " + std::string(name_of(dtype)));
    const OpResult played = play(op, dtype, true);
    const OpResult silent = play(op, dtype, false);
    for (std::size_t i = 0; i < played.outputs.size(); ++i) {
      EXPECT_LE(relative_error(played.outputs[i], fixture.values(name + "/out")), tolerance(dtype));
      EXPECT_EQ(played.outputs[i], silent.outputs[i]) << "the tape changes the value";
    }
    for (const auto& [input, gradient] : played.gradients) {
      EXPECT_LE(relative_error(gradient, fixture.values(name + "/d_" + input)), tolerance(dtype))
          << "gradient of " << input;
    }
  }
}

inline Offsets share(std::vector<int64_t> offsets) {
  return std::make_shared<const std::vector<int64_t>>(std::move(offsets));
}
inline Offsets offsets_from(const Fixture& fixture, const std::string& name) {
  const std::vector<int32_t> values = fixture.integers(name);
  return share({values.begin(), values.end()});
}

}  // namespace attend::testing
