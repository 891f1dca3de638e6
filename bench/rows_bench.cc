// Kernels that go over a lane row by row: norm, activation, softmax and loss, with and without
// dropout. A dropout mask costs random bits, which are neither bytes nor FLOP: it lowers the share.
#include "attend/kernels/activation.h"
#include "attend/kernels/norm.h"
#include "attend/kernels/softmax.h"
#include "bench/cases.h"
#include "bench/roofline.h"

namespace attend {
namespace {

/// FLOP of `each` operations on every element, one more with dropout.
Work row_work(const Tensor& x, double each, const Dropout& dropout = {}) {
  return {.flops = static_cast<double>(x.count()) * (each + (dropout.active() ? 1 : 0))};
}

/// Forward: + (1), mean (1), variance (3), (sum - mean) · deviation · gain + bias (4).
void norm_forward(benchmark::State& state, const Size& size, const Dropout& dropout, DType dtype) {
  const Shape shape{kLaneTokens, size.d_model}, row{size.d_model};
  const ResidualNormForward op{
      .x = filled(shape, DType::kFloat32),
      .y = filled(shape, dtype),
      .dropout = dropout,
      .gain = filled(row, DType::kFloat32),
      .bias = filled(row, DType::kFloat32),
      .sum = Tensor(shape, DType::kFloat32),
      .out = Tensor(shape, DType::kFloat32),
      .out_compute = dtype == DType::kFloat32 ? Tensor() : Tensor(shape, dtype),
      .statistics = Tensor({kLaneTokens, 2}, DType::kFloat32)};
  Work work = row_work(op.x, 9, dropout);
  work.reads({op.x, op.y, op.gain, op.bias});
  work.writes({op.sum, op.out, op.out_compute, op.statistics});
  measure(state, work, [&] { residual_norm_forward(op); });
}

/// Backward: the normalised row again (2), its gradients' sum (1 where there are two), d_gain (2),
/// d_bias (1), · gain (1), two means (3), d_sum (4).
void norm_backward(benchmark::State& state, const Size& size, const Dropout& dropout, DType dtype) {
  const Shape shape{kLaneTokens, size.d_model}, row{size.d_model};
  const bool two_forms = dtype != DType::kFloat32;
  const ResidualNormBackward op{.sum = filled(shape, DType::kFloat32),
                                .gain = filled(row, DType::kFloat32),
                                .statistics = filled({kLaneTokens, 2}, DType::kFloat32),
                                .dropout = dropout,
                                .d_out1 = filled(shape, DType::kFloat32),
                                .d_out2 = two_forms ? filled(shape, DType::kFloat32) : Tensor(),
                                .dx = Tensor(shape, DType::kFloat32),
                                .dy = Tensor(shape, dtype),
                                .d_gain = Tensor(row, DType::kFloat32),
                                .d_bias = Tensor(row, DType::kFloat32)};
  Work work = row_work(op.sum, two_forms ? 14 : 13, dropout);
  work.reads({op.sum, op.gain, op.statistics, op.d_out1, op.d_out2});
  work.writes({op.dx, op.dy, op.d_gain, op.d_bias});
  measure(state, work, [&] { residual_norm_backward(op); });
}

/// max(0, x) is 1 operation, its derivative too; x · Φ(x) = x / 2 · (1 + erf(x / √2)) is 5, and its
/// derivative, Φ(x) + x · φ(x), 10.
double activation_flops(ActivationKind kind, bool is_backward) {
  if (kind == ActivationKind::kRelu) return 1;
  return is_backward ? 10 : 5;
}

void activation_forwards(benchmark::State& state, const Size& size, ActivationKind kind,
                         const Dropout& dropout, DType dtype) {
  const Tensor x = filled({kLaneTokens, size.d_ff}, dtype);
  Work work = row_work(x, activation_flops(kind, false), dropout);
  if (kind == ActivationKind::kRelu) {  // in place, as in training
    measure(state, work.updates({x}), [&] { activation_forward(kind, dropout, x, x); });
    return;
  }
  const Tensor out(x.shape(), dtype);
  measure(state, work.reads({x}).writes({out}), [&] { activation_forward(kind, dropout, x, out); });
}

void activation_backwards(benchmark::State& state, const Size& size, ActivationKind kind,
                          const Dropout& dropout, DType dtype) {
  const Tensor saved = filled({kLaneTokens, size.d_ff}, dtype);
  const Tensor gradient = filled(saved.shape(), dtype);
  Work work = row_work(saved, activation_flops(kind, true), dropout);
  measure(state, work.reads({saved}).updates({gradient}),
          [&] { activation_backward(kind, dropout, saved, gradient); });
}

/// max (1), sum (1), exp(score - max) summed (3), · factor - spread (2).
void softmax_loss(benchmark::State& state, const Size& size, DType dtype) {
  const Tensor logits = filled({kTileRows, size.vocabulary}, DType::kFloat32);
  const Tensor d_logits(logits.shape(), dtype);
  const std::vector<int32_t> targets = random_ids(kTileRows, size.vocabulary);
  measure(state, row_work(logits, 7).reads({logits}).writes({d_logits}),
          [&] { benchmark::DoNotOptimize(cross_entropy(logits, targets, 0.1F, 1.0F, d_logits)); });
}

void bias_gradient(benchmark::State& state, const Size& size, DType dtype) {
  const Tensor dy = filled({kLaneTokens, size.d_ff}, dtype);
  const Tensor sums = Tensor::zeros({size.d_ff}, DType::kFloat32);
  measure(state, row_work(dy, 1).reads({dy}).updates({sums}), [&] { add_column_sums(dy, sums); });
}

template <class Run>
void add(const char* kernel, const Size& size, const std::string& variant, DType dtype, Run run) {
  benchmark::RegisterBenchmark(name_case(kernel, size, variant, dtype).c_str(), run);
}

void define_with_dropout(const Size& size, const Dropout& dropout, DType dtype) {
  const std::string variant = dropout.active() ? "dropout" : "";
  using benchmark::State;
  add("norm_forward", size, variant, dtype,
      [=](State& state) { norm_forward(state, size, dropout, dtype); });
  add("norm_backward", size, variant, dtype,
      [=](State& state) { norm_backward(state, size, dropout, dtype); });
  for (const auto& [kind, name] :
       {std::pair{ActivationKind::kRelu, "relu"}, std::pair{ActivationKind::kGelu, "gelu"}}) {
    const std::string full = variant.empty() ? name : name + ("/" + variant);
    add("activation_forward", size, full, dtype,
        [=](State& state) { activation_forwards(state, size, kind, dropout, dtype); });
    add("activation_backward", size, full, dtype,
        [=](State& state) { activation_backwards(state, size, kind, dropout, dtype); });
  }
}

}  // namespace

void define_row_kernels() {
  using benchmark::State;
  for (const Size& size : {kTiny, kBase}) {
    for (const DType dtype : dtypes()) {
      define_with_dropout(size, {}, dtype);
      define_with_dropout(size, {0.1F, {7, 0, 3}}, dtype);
      add("softmax_loss", size, "", dtype, [=](State& state) { softmax_loss(state, size, dtype); });
      add("bias_gradient", size, "", dtype,
          [=](State& state) { bias_gradient(state, size, dtype); });
    }
  }
}

}  // namespace attend
