// Attention forward and backward on a step's worth of short sequences. Counters: FLOP/s of the
// matrix products alone (forward 2, backward 5 for each query, key and column).
#include <cmath>
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "attend/base/random.h"
#include "attend/kernels/additive_attention.h"
#include "attend/kernels/attention.h"
#include "attend/kernels/cached_attention.h"
#include "attend/tensor/tensor.h"

namespace attend {
namespace {

Tensor random_tensor(int64_t rows, int64_t columns, DType dtype, uint64_t seed) {
  RandomGenerator random(seed);
  std::vector<float> values(static_cast<std::size_t>(rows * columns));
  for (float& value : values) value = random.normal();
  const Tensor made({rows, columns}, dtype);
  made.assign(values);
  return made;
}

/// A batch of equally long sequences in one fused projection, as the encoder has it.
struct Batch {
  Batch(int64_t length, int64_t heads, int64_t width, int64_t tokens, DType dtype, bool causal,
        float dropout)
      : fused(random_tensor(tokens, 3 * heads * width, dtype, 1)),
        d_fused({tokens, 3 * heads * width}, dtype),
        out({tokens, heads * width}, dtype),
        d_out(random_tensor(tokens, heads * width, dtype, 2)),
        columns(heads * width) {
    for (int64_t at = 0; at <= tokens; at += length) offsets.push_back(at);
    shape = {heads,
             width,
             width,
             offsets,
             offsets,
             causal,
             1.0F / std::sqrt(float(width)),
             {dropout, {7, 0, 3}}};
    const double pairs = double(tokens) * double(causal ? length + 1 : 2 * length) / 2;
    products = 2.0 * pairs * double(columns);
  }
  Tensor part(const Tensor& whole, int64_t index) const {
    return whole.slice_columns(index * columns, (index + 1) * columns);
  }

  std::vector<int64_t> offsets;
  Tensor fused, d_fused, out, d_out;
  int64_t columns;
  AttentionShape shape;
  double products;  ///< arithmetic of one product of all queries and keys
};

Batch batch_of(const benchmark::State& state) {
  const int64_t length = state.range(0);
  return Batch(length, state.range(1), state.range(2), std::max<int64_t>(2048 / length, 1) * length,
               state.range(3) != 0 ? DType::kBFloat16 : DType::kFloat32, state.range(4) != 0,
               float(state.range(5)) / 10);
}

void count_flops(benchmark::State& state, double flops) {
  state.counters["FLOP/s"] =
      benchmark::Counter(flops * double(state.iterations()), benchmark::Counter::kIsRate);
}

void BM_AttentionForward(benchmark::State& state) {
  const Batch batch = batch_of(state);
  const Tensor q = batch.part(batch.fused, 0), k = batch.part(batch.fused, 1),
               v = batch.part(batch.fused, 2);
  for (auto _ : state) attention_forward(batch.shape, q, k, v, batch.out);
  count_flops(state, 2 * batch.products);
}

void BM_AttentionBackward(benchmark::State& state) {
  const Batch batch = batch_of(state);
  const Tensor q = batch.part(batch.fused, 0), k = batch.part(batch.fused, 1),
               v = batch.part(batch.fused, 2);
  const Tensor d_q = batch.part(batch.d_fused, 0), d_k = batch.part(batch.d_fused, 1),
               d_v = batch.part(batch.d_fused, 2);
  for (auto _ : state) attention_backward(batch.shape, q, k, v, batch.d_out, d_q, d_k, d_v);
  count_flops(state, 5 * batch.products);
}

void BM_AdditiveAttentionForward(benchmark::State& state) {
  const Batch batch = batch_of(state);
  const Tensor q = batch.part(batch.fused, 0), k = batch.part(batch.fused, 1),
               v = batch.part(batch.fused, 2);
  const Tensor w = random_tensor(batch.shape.heads, batch.shape.key_width, DType::kFloat32, 3);
  for (auto _ : state) additive_attention_forward(batch.shape, q, k, v, w, batch.out);
  count_flops(state, 2 * batch.products);
}

/// Beam search over `length` slots a row.
void BM_CachedAttention(benchmark::State& state) {
  const int64_t length = state.range(0), heads = state.range(1), width = state.range(2);
  const DType dtype = state.range(3) != 0 ? DType::kBFloat16 : DType::kFloat32;
  constexpr int64_t kRows = 64, kSlots = 4096;
  const Tensor keys = random_tensor(kSlots, heads * width, dtype, 1),
               values = random_tensor(kSlots, heads * width, dtype, 2),
               q = random_tensor(kRows, heads * width, dtype, 3);
  const Tensor out({kRows, heads * width}, dtype);
  RandomGenerator random(4);
  std::vector<int64_t> offsets{0};
  std::vector<int32_t> slots;
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t i = 0; i < length; ++i) slots.push_back(int32_t(random.uniform_index(kSlots)));
    offsets.push_back(int64_t(slots.size()));
  }
  const CachedAttentionShape shape{heads, width, width, offsets, slots, 0.125F};
  for (auto _ : state) cached_attention(shape, q, keys, values, out);
  count_flops(state, 4.0 * double(kRows * length * heads * width));
}

void training_sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"length", "heads", "width", "bf16", "causal", "dropout/10"});
  for (const int64_t length : {8, 12, 16, 17, 24, 32, 60, 512}) {
    bench->Args({length, 4, 32, 0, 0, 0});
    bench->Args({length, 8, 64, 0, 0, 0});
  }
  for (const int64_t length : {16, 32}) {
    bench->Args({length, 4, 32, 1, 0, 0});
    bench->Args({length, 8, 64, 1, 0, 0});
    bench->Args({length, 8, 64, 1, 1, 0});
    bench->Args({length, 8, 64, 1, 0, 1});
  }
}

BENCHMARK(BM_AttentionForward)->Apply(training_sizes);
BENCHMARK(BM_AttentionBackward)->Apply(training_sizes);
BENCHMARK(BM_AdditiveAttentionForward)->Args({32, 8, 64, 0, 0, 0});
BENCHMARK(BM_CachedAttention)
    ->ArgNames({"length", "heads", "width", "bf16"})
    ->Args({16, 4, 32, 0})
    ->Args({16, 4, 32, 1})
    ->Args({32, 8, 64, 0})
    ->Args({32, 8, 64, 1});

}  // namespace
}  // namespace attend
