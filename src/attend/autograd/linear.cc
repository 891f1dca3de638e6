#include "attend/autograd/ops.h"
#include "attend/autograd/traffic.h"
#include "attend/base/profile.h"
#include "attend/kernels/gemm.h"

namespace attend {

Variable linear(Context& context, const Variable& x, Parameter& weight, Parameter* bias) {
  const ProfileScope scope("linear forward");
  const Tensor y = context.tensor({x.value().rows(), weight.shape[0]}, context.compute);
  if (weight.packed != nullptr) {
    multiply(x.value(), *weight.packed, bias != nullptr ? bias->master : Tensor(), y);
  } else {
    gemm(x.value(), Transpose::kNo, weight.compute, Transpose::kYes, y,
         {.bias = bias != nullptr ? &bias->master : nullptr});
  }
  const Variable result(y, context.compute);
  Tape* tape = context.tape;
  if (tape == nullptr) return result;

  tape->announce(weight);
  if (bias != nullptr) tape->announce(*bias);
  tape->record("linear backward", [=, &weight, memory = context.memory] {
    const Tensor& dy = result.gradient();
    if (!dy.defined()) return;
    tape->add_gradient(weight, [&] {
      gemm(dy, Transpose::kYes, x.value(), Transpose::kNo, weight.gradient, {.accumulate = true});
    });
    if (bias != nullptr) {
      tape->add_gradient(*bias, [&] {
        add_column_sums(dy, bias->gradient);
        profile_traffic(dy);
      });
    }
    const auto [dx, accumulate] = x.gradient_sink(*memory);
    gemm(dy, Transpose::kNo, weight.compute, Transpose::kNo, dx, {.accumulate = accumulate});
  });
  return result;
}

Variable activation(Context& context, const Variable& x, ActivationKind kind, float rate) {
  const ProfileScope scope("activation forward");
  const Dropout dropout = context.dropout(rate);
  const bool in_place = kind == ActivationKind::kRelu;
  const Tensor& input = x.value();
  const Tensor out = in_place ? input : context.tensor(input.shape(), input.dtype());
  activation_forward(kind, dropout, input, out);
  profile_traffic(input, out);
  const Variable result(out, context.compute);
  if (context.tape == nullptr) return result;

  context.tape->record("activation backward", [=, saved = in_place ? out : input] {
    const Tensor& gradient = result.gradient();
    if (!gradient.defined()) return;
    activation_backward(kind, dropout, saved, gradient);
    profile_traffic(saved, gradient, gradient);
    x.give_gradient(gradient);
  });
  return result;
}

}  // namespace attend
