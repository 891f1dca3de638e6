// Attention in training and in search. FLOP/s are those of the matrix products alone: for every
// query that meets a key, 2 products forward and 5 backward, as the profile counts them.
#include <algorithm>
#include <cmath>

#include "attend/kernels/additive_attention.h"
#include "attend/kernels/attention.h"
#include "attend/kernels/cached_attention.h"
#include "bench/cases.h"
#include "bench/roofline.h"

namespace attend {
namespace {

struct Variant {
  int64_t length;
  bool causal = false;
  float dropout = 0;
};

/// A lane of equally long sequences in one fused projection, as the model has it.
struct Lane {
  Lane(const Size& size, const Variant& variant, DType dtype) : columns(size.d_model) {
    const int64_t sequences = std::max<int64_t>(1, kLaneTokens / variant.length);
    for (int64_t i = 0; i <= sequences; ++i) offsets.push_back(i * variant.length);
    const int64_t tokens = offsets.back();
    fused = filled({tokens, 3 * columns}, dtype);
    d_fused = Tensor({tokens, 3 * columns}, dtype);
    out = filled({tokens, columns}, dtype);
    const int64_t width = size.d_model / size.heads;
    shape = {.heads = size.heads,
             .key_width = width,
             .value_width = width,
             .query_offsets = offsets,
             .key_offsets = offsets,
             .causal = variant.causal,
             .scale = 1.0F / std::sqrt(static_cast<float>(width)),
             .dropout = {variant.dropout, {7, 0, 3}}};
    const int64_t keys = variant.causal ? variant.length + 1 : 2 * variant.length;
    pairs = static_cast<double>(tokens * keys) / 2;
  }
  Lane(const Lane&) = delete;  // shape points into offsets
  Lane& operator=(const Lane&) = delete;

  Tensor part(const Tensor& whole, int64_t index) const {
    return whole.slice_columns(index * columns, (index + 1) * columns);
  }
  double product_flops() const { return 2 * pairs * static_cast<double>(columns); }

  int64_t columns;
  std::vector<int64_t> offsets;
  Tensor fused, d_fused, out;
  AttentionShape shape;
  double pairs;  ///< of a query and a key that it sees
};

void forward(benchmark::State& state, const Size& size, const Variant& variant, DType dtype) {
  const Lane lane(size, variant, dtype);
  const Tensor q = lane.part(lane.fused, 0), k = lane.part(lane.fused, 1),
               v = lane.part(lane.fused, 2);
  measure(state, Work{.flops = 2 * lane.product_flops()}.reads({q, k, v}).writes({lane.out}),
          [&] { attention_forward(lane.shape, q, k, v, lane.out); });
}

void backward(benchmark::State& state, const Size& size, const Variant& variant, DType dtype) {
  const Lane lane(size, variant, dtype);
  const Tensor q = lane.part(lane.fused, 0), k = lane.part(lane.fused, 1),
               v = lane.part(lane.fused, 2);
  const Tensor d_q = lane.part(lane.d_fused, 0), d_k = lane.part(lane.d_fused, 1),
               d_v = lane.part(lane.d_fused, 2);
  Work work{.flops = 5 * lane.product_flops()};
  work.reads({q, k, v, lane.out}).writes({d_q, d_k, d_v});
  measure(state, work, [&] { attention_backward(lane.shape, q, k, v, lane.out, d_q, d_k, d_v); });
}

/// The score is a sum over tanh(q + k): 4 operations where the dot product has 2.
void additive(benchmark::State& state, const Size& size, const Variant& variant, DType dtype) {
  const Lane lane(size, variant, dtype);
  const Tensor q = lane.part(lane.fused, 0), k = lane.part(lane.fused, 1),
               v = lane.part(lane.fused, 2);
  const Tensor w = filled({lane.shape.heads, lane.shape.key_width}, DType::kFloat32);
  measure(state, Work{.flops = 3 * lane.product_flops()}.reads({q, k, v, w}).writes({lane.out}),
          [&] { additive_attention_forward(lane.shape, q, k, v, w, lane.out); });
}

/// A model's search computes in float32 or bfloat16, over caches of float32 or bfloat16.
struct SearchTypes {
  DType compute, cache;
};

constexpr int64_t kRows = 64;  ///< hypotheses

/// 2 products for every hypothesis that meets a slot; `loads` rows of keys and values are read.
Work search_work(const Tensor& q, const Tensor& out, const Tensor& keys, int64_t length,
                 int64_t loads) {
  const int64_t columns = q.columns();
  Work work{.flops = 4.0 * static_cast<double>(kRows * length * columns)};
  work.reads({q}).writes({out});
  const auto gathered = static_cast<double>(2 * loads * columns * size_of(keys.dtype()));
  work.bytes += gathered;
  work.working_set += std::min(gathered, 2.0 * static_cast<double>(keys.bytes()));
  return work;
}

/// Beam search: hypotheses that attend to `length` slots each, anywhere in the cache.
void cached(benchmark::State& state, const Size& size, int64_t length, SearchTypes types) {
  constexpr int64_t kSlots = 4096;
  const Tensor keys = filled({kSlots, size.d_model}, types.cache),
               values = filled({kSlots, size.d_model}, types.cache),
               q = filled({kRows, size.d_model}, types.compute);
  const Tensor out({kRows, size.d_model}, types.compute);
  const std::vector<int32_t> slots = random_ids(kRows * length, kSlots);
  std::vector<int64_t> offsets;
  for (int64_t row = 0; row <= kRows; ++row) offsets.push_back(row * length);
  const int64_t width = size.d_model / size.heads;
  const CachedAttentionShape shape{size.heads, width, width, offsets, slots, 0.125F};
  measure(state, search_work(q, out, keys, length, kRows * length),
          [&] { cached_attention(shape, q, keys, values, out); });
}

/// The same over source sentences of `length` tokens with four hypotheses each.
void memory(benchmark::State& state, const Size& size, int64_t length, SearchTypes types) {
  constexpr int64_t kBeam = 4;
  const int64_t tokens = kRows / kBeam * length;
  const Tensor keys = filled({tokens, size.d_model}, types.cache),
               values = filled({tokens, size.d_model}, types.cache),
               q = filled({kRows, size.d_model}, types.compute);
  const Tensor out({kRows, size.d_model}, types.compute);
  std::vector<int64_t> first;
  for (int64_t row = 0; row < kRows; ++row) first.push_back(row / kBeam * length);
  const std::vector<int64_t> count(kRows, length);
  const int64_t width = size.d_model / size.heads;
  const MemoryAttentionShape shape{size.heads, width, width, first, count, 0.125F};
  measure(state, search_work(q, out, keys, length, tokens),
          [&] { memory_attention(shape, q, keys, values, out); });
}

void define_search(const Size& size, SearchTypes types) {
  for (const int64_t length : {16, 64}) {
    std::string name = "length=" + std::to_string(length);
    if (types.cache != types.compute) name += "/cache=" + std::string(name_of(types.cache));
    benchmark::RegisterBenchmark(
        name_case("cached_attention", size, name, types.compute).c_str(),
        [=](benchmark::State& state) { cached(state, size, length, types); });
    benchmark::RegisterBenchmark(
        name_case("memory_attention", size, name, types.compute).c_str(),
        [=](benchmark::State& state) { memory(state, size, length, types); });
  }
}

void define(const Size& size, const Variant& variant, DType dtype) {
  std::string name = "length=" + std::to_string(variant.length);
  if (variant.causal) name += "/causal";
  if (variant.dropout > 0) name += "/dropout";
  benchmark::RegisterBenchmark(
      name_case("attention_forward", size, name, dtype).c_str(),
      [=](benchmark::State& state) { forward(state, size, variant, dtype); });
  benchmark::RegisterBenchmark(
      name_case("attention_backward", size, name, dtype).c_str(),
      [=](benchmark::State& state) { backward(state, size, variant, dtype); });
}

}  // namespace

void define_attention() {
  for (const Size& size : {kTiny, kBase}) {
    for (const DType dtype : dtypes()) {
      for (const int64_t length : {8, 16, 32, 64, 128, 512}) define(size, {length}, dtype);
      for (const int64_t length : {16, 32, 128}) define(size, {length, true, 0}, dtype);
      define(size, {32, false, 0.1F}, dtype);
      define(size, {32, true, 0.1F}, dtype);
      benchmark::RegisterBenchmark(
          name_case("additive_attention_forward", size, "length=32", dtype).c_str(),
          [=](benchmark::State& state) { additive(state, size, {32}, dtype); });
      define_search(size, {dtype, dtype});
    }
    define_search(size, {DType::kFloat32, DType::kBFloat16});  // a model of 8-bit weights
  }
}

}  // namespace attend
