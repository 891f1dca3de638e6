// The rates of single kernels on one core, at the sizes of the presets tiny and base.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "attend/kernels/attention.h"
#include "attend/kernels/gemm.h"
#include "attend/kernels/norm.h"

namespace attend {
namespace {

Tensor filled(Shape shape, DType dtype) {
  const int64_t count = count_of(shape);
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = 0.01F * static_cast<float>(i % 199) - 1.0F;
  }
  Tensor tensor(std::move(shape), dtype);
  tensor.assign(values);
  return tensor;
}

DType dtype_of(const benchmark::State& state) { return static_cast<DType>(state.range(0)); }

void set_rate(benchmark::State& state, double flop) {
  state.SetLabel(std::string(name_of(dtype_of(state))));
  state.counters["FLOP/s"] =
      benchmark::Counter(flop, benchmark::Counter::kIsIterationInvariantRate);
}

/// tokens × in × out, as the forward pass of a linear layer.
void matrix_product(benchmark::State& state) {
  const int64_t tokens = state.range(1);
  const int64_t in = state.range(2);
  const int64_t out = state.range(3);
  const Tensor x = filled({tokens, in}, dtype_of(state));
  const Tensor weight = filled({out, in}, dtype_of(state));
  const Tensor y({tokens, out}, dtype_of(state));
  for (auto _ : state) gemm(x, Transpose::kNo, weight, Transpose::kYes, y);
  set_rate(state, 2.0 * static_cast<double>(tokens * in * out));
}

/// Self-attention of 32 sequences: their length, heads, and the width of a head.
void attention(benchmark::State& state, bool backward) {
  constexpr int64_t kSequences = 32;
  const int64_t length = state.range(1);
  const int64_t width = state.range(3);
  const int64_t d_model = state.range(2) * width;
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i <= kSequences; ++i) offsets.push_back(i * length);
  AttentionShape shape;
  shape.heads = state.range(2);
  shape.key_width = shape.value_width = width;
  shape.query_offsets = shape.key_offsets = offsets;
  shape.scale = 0.125F;
  const Shape size = {kSequences * length, d_model};
  const Tensor q = filled(size, dtype_of(state));
  const Tensor k = filled(size, dtype_of(state));
  const Tensor v = filled(size, dtype_of(state));
  const Tensor out(size, dtype_of(state));
  const Tensor d_q(size, dtype_of(state));
  const Tensor d_k(size, dtype_of(state));
  for (auto _ : state) {
    if (backward) {
      attention_backward(shape, q, k, v, v, d_q, d_k, out);
    } else {
      attention_forward(shape, q, k, v, out);
    }
  }
  const double product = 2.0 * static_cast<double>(kSequences * length * length * d_model);
  set_rate(state, (backward ? 5 : 2) * product);
}

/// Residual sum and layer normalisation: rows, d_model.
void residual_norm(benchmark::State& state) {
  const Shape size = {state.range(1), state.range(2)};
  ResidualNormForward op;
  op.x = filled(size, DType::kFloat32);
  op.y = filled(size, dtype_of(state));
  op.gain = filled({state.range(2)}, DType::kFloat32);
  op.bias = filled({state.range(2)}, DType::kFloat32);
  op.sum = Tensor(size, DType::kFloat32);
  op.out = Tensor(size, DType::kFloat32);
  op.out_compute = Tensor(size, dtype_of(state));
  op.statistics = Tensor({state.range(1), 2}, DType::kFloat32);
  for (auto _ : state) residual_norm_forward(op);
  state.SetLabel(std::string(name_of(dtype_of(state))));
  state.SetItemsProcessed(state.iterations() * op.x.count());
}

std::vector<int64_t> dtypes() {
  std::vector<int64_t> found = {static_cast<int64_t>(DType::kFloat32)};
  if (has_bfloat16_arithmetic()) found.push_back(static_cast<int64_t>(DType::kBFloat16));
  return found;
}

void define_benchmarks() {
  auto* products = benchmark::RegisterBenchmark("matrix_product", matrix_product);
  auto* forward = benchmark::RegisterBenchmark(
      "attention_forward", [](benchmark::State& state) { attention(state, false); });
  auto* backward = benchmark::RegisterBenchmark(
      "attention_backward", [](benchmark::State& state) { attention(state, true); });
  auto* norms = benchmark::RegisterBenchmark("residual_norm", residual_norm);
  for (const int64_t dtype : dtypes()) {
    products->Args({dtype, 1024, 128, 256})->Args({dtype, 1024, 512, 512});
    products->Args({dtype, 4096, 512, 2048});
    forward->Args({dtype, 16, 4, 32})->Args({dtype, 32, 8, 64});
    backward->Args({dtype, 16, 4, 32})->Args({dtype, 32, 8, 64});
    norms->Args({dtype, 2048, 128})->Args({dtype, 1024, 512});
  }
}

}  // namespace
}  // namespace attend

int main(int argc, char** argv) {
  attend::use_one_thread_here();
  attend::define_benchmarks();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
