#include "attend/kernels/norm.h"

#include "attend/autograd/ops.h"
#include "attend/autograd/traffic.h"
#include "attend/base/profile.h"

namespace attend {
namespace {

/// Adds a norm's weight gradients, worked out aside, in the lane's turn.
void add_norm_gradients(Tape& tape, Parameter& gain, Parameter& bias, const Tensor& d_gain,
                        const Tensor& d_bias) {
  tape.add_gradient(gain, [&] { convert(d_gain, gain.gradient, true); });
  tape.add_gradient(bias, [&] { convert(d_bias, bias.gradient, true); });
}

}  // namespace

Variable layer_norm(Context& context, const Variable& x, Parameter& gain, Parameter& bias) {
  const ProfileScope scope("norm forward");
  const Tensor statistics = context.tensor({x.value().rows(), 2}, DType::kFloat32);
  const Tensor out = context.tensor(x.value().shape(), context.compute);
  residual_norm_forward({.x = x.value(),
                         .gain = gain.master,
                         .bias = bias.master,
                         .out_compute = out,
                         .statistics = statistics});
  profile_traffic(x.value(), out);
  const Variable result(out, DType::kFloat32);
  Tape* tape = context.tape;
  if (tape == nullptr) return result;

  tape->announce(gain);
  tape->announce(bias);
  tape->record("norm backward", [=, &gain, &bias, memory = context.memory] {
    if (!result.gradient().defined()) return;
    const Tensor d_gain(gain.shape, DType::kFloat32, *memory);
    const Tensor d_bias(gain.shape, DType::kFloat32, *memory);
    const auto [dx, accumulate] = x.gradient_sink(*memory);
    residual_norm_backward({.sum = x.value(),
                            .gain = gain.master,
                            .statistics = statistics,
                            .d_out1 = result.gradient(),
                            .dx = dx,
                            .accumulate_dx = accumulate,
                            .d_gain = d_gain,
                            .d_bias = d_bias});
    profile_traffic(x.value(), result.gradient(), dx, accumulate ? dx : Tensor());
    add_norm_gradients(*tape, gain, bias, d_gain, d_bias);
  });
  return result;
}

Variable residual(Context& context, const Variable& x, const Variable& y, float rate) {
  const ProfileScope scope("residual forward");
  const Dropout dropout = context.dropout(rate);
  const Tensor sum = context.tensor(x.value().shape(), DType::kFloat32);
  residual_norm_forward({.x = x.value(), .y = y.value(), .dropout = dropout, .sum = sum});
  profile_traffic(x.value(), y.value(), sum);
  const Variable result(sum, DType::kFloat32);
  if (context.tape == nullptr) return result;

  y.drop_value();
  context.tape->record("residual backward", [=, memory = context.memory] {
    const Tensor& d_sum = result.gradient();
    if (!d_sum.defined()) return;
    const auto [dy, dy_accumulate] = y.gradient_sink(*memory);  // y has this one reader
    const auto [dx, accumulate] = x.gradient_sink(*memory);
    residual_norm_backward(
        {.dropout = dropout, .d_sum = d_sum, .dx = dx, .accumulate_dx = accumulate, .dy = dy});
    profile_traffic(d_sum, dx, accumulate ? dx : Tensor(), dy);
  });
  return result;
}

Stream residual_norm(Context& context, const Variable& x, const Variable& y, float rate,
                     Parameter& gain, Parameter& bias) {
  const ProfileScope scope("norm forward");
  const Dropout dropout = context.dropout(rate);
  const bool two_forms = context.compute != DType::kFloat32;
  const Shape& shape = x.value().shape();
  const bool recording = context.tape != nullptr;
  const Tensor sum = recording ? context.tensor(shape, DType::kFloat32) : Tensor();
  const Tensor statistics = context.tensor({x.value().rows(), 2}, DType::kFloat32);
  const Tensor out = context.tensor(shape, DType::kFloat32);
  const Tensor operand = two_forms ? context.tensor(shape, context.compute) : Tensor();
  residual_norm_forward({.x = x.value(),
                         .y = y.value(),
                         .dropout = dropout,
                         .gain = gain.master,
                         .bias = bias.master,
                         .sum = sum,
                         .out = out,
                         .out_compute = operand,
                         .statistics = statistics});
  profile_traffic(x.value(), y.value(), sum, out, operand);
  Stream result{Variable(out, DType::kFloat32), {}};
  result.operand = two_forms ? Variable(operand, DType::kFloat32) : result.residual;
  Tape* tape = context.tape;
  if (tape == nullptr) return result;

  y.drop_value();
  tape->announce(gain);
  tape->announce(bias);
  tape->record("norm backward", [=, &gain, &bias, memory = context.memory] {
    const Tensor& d_out1 = result.residual.gradient();
    const Tensor d_out2 = two_forms ? result.operand.gradient() : Tensor();
    if (!d_out1.defined() && !d_out2.defined()) return;
    const Tensor d_gain(gain.shape, DType::kFloat32, *memory);
    const Tensor d_bias(gain.shape, DType::kFloat32, *memory);
    const auto [dy, dy_accumulate] = y.gradient_sink(*memory);  // y has this one reader
    const auto [dx, accumulate] = x.gradient_sink(*memory);
    residual_norm_backward({.sum = sum,
                            .gain = gain.master,
                            .statistics = statistics,
                            .dropout = dropout,
                            .d_out1 = d_out1,
                            .d_out2 = d_out2,
                            .dx = dx,
                            .accumulate_dx = accumulate,
                            .dy = dy,
                            .d_gain = d_gain,
                            .d_bias = d_bias});
    profile_traffic(sum, d_out1, d_out2, dx, accumulate ? dx : Tensor(), dy);
    add_norm_gradients(*tape, gain, bias, d_gain, d_bias);
  });
  return result;
}

}  // namespace attend
