#include "attend/nn/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "attend/base/error.h"
#include "tests/support/numbers.h"

namespace attend::testing {
namespace {

using Kind = MultiHeadAttention::Kind;

Offsets share(std::vector<int64_t> offsets) {
  return std::make_shared<const std::vector<int64_t>>(std::move(offsets));
}
RowPositions places(std::vector<int32_t> positions) {
  return std::make_shared<const std::vector<int32_t>>(std::move(positions));
}

TransformerConfig config_of(int64_t d_model, int64_t heads, int64_t d_k, int64_t d_v) {
  TransformerConfig config;
  config.d_model = d_model;
  config.heads = heads;
  config.d_k = d_k;
  config.d_v = d_v;
  return config;
}

/// One layer with weights that leave nothing at 0.
struct Layer {
  Layer(const TransformerConfig& config, Kind kind, bool causal, DType compute = DType::kFloat32)
      : attention(set, "attention", config, kind, causal) {
    set.allocate(compute, false);
    uint64_t seed = 0;
    for (Parameter& parameter : set.parameters()) {
      parameter.master.assign(random_values(parameter.master.count(), ++seed, 0.5F));
    }
    set.refresh_compute();
    context.compute = compute;
  }

  Variable input(int64_t rows, int64_t d_model, uint64_t seed) const {
    return Variable(random_tensor({rows, d_model}, seed, context.compute), context.compute);
  }

  ParameterSet set;
  MultiHeadAttention attention;
  Context context;
};

/// The configurations that decoding must handle, with odd widths.
std::vector<TransformerConfig> configs() {
  TransformerConfig odd = config_of(6, 3, 5, 7), rotary = config_of(6, 2, 4, 3);
  rotary.positions = Positions::kRotary;
  TransformerConfig additive = config_of(6, 2, 3, 5);
  additive.attention_score = AttentionScore::kAdditive;
  return {config_of(8, 2, 0, 0), odd, rotary, additive, config_of(5, 1, 1, 1)};
}

std::string describe(const TransformerConfig& config, DType dtype) {
  return fmt::format("d_model {}, {} heads, d_k {}, d_v {}, {}", config.d_model, config.heads,
                     config.d_k, config.d_v, name_of(dtype));
}

TEST(MultiHeadAttention, NamesItsWeights) {
  ParameterSet set;
  TransformerConfig config = config_of(6, 3, 5, 7);
  config.attention_score = AttentionScore::kAdditive;
  const MultiHeadAttention self(set, "self", config, Kind::kSelf, false);
  const MultiHeadAttention cross(set, "cross", config, Kind::kCross, false);
  const std::vector<std::pair<std::string, Shape>> expected = {
      {"self.qkv.weight", {51, 6}},    {"self.qkv.bias", {51}},
      {"self.output.weight", {6, 21}}, {"self.output.bias", {6}},
      {"self.score_vector", {3, 5}},   {"cross.q.weight", {15, 6}},
      {"cross.q.bias", {15}},          {"cross.kv.weight", {36, 6}},
      {"cross.kv.bias", {36}},         {"cross.output.weight", {6, 21}},
      {"cross.output.bias", {6}},      {"cross.score_vector", {3, 5}}};
  std::vector<std::pair<std::string, Shape>> found;
  for (const Parameter& parameter : set.parameters()) {
    found.emplace_back(parameter.name, parameter.shape);
  }
  EXPECT_EQ(found, expected);
}

// d_k = 1, one query 1, keys ln 3 and 0, values 2 and 6: weights 3/4 and 1/4, output 3. Identity
// projections by hand, queries from a decoder of one row.
TEST(MultiHeadAttention, WorkedExample) {
  Layer layer(config_of(2, 1, 1, 1), Kind::kCross, false);
  layer.set.find("attention.q.weight").master.assign({1, 0});
  layer.set.find("attention.q.bias").master.assign({0});
  layer.set.find("attention.kv.weight").master.assign({1, 0, 0, 1});
  layer.set.find("attention.kv.bias").master.assign({0, 0});
  layer.set.find("attention.output.weight").master.assign({1, 0});
  layer.set.find("attention.output.bias").master.assign({0, 0});
  const Variable query(Tensor::from({1, 0}, {1, 2}), DType::kFloat32);
  const Variable memory(Tensor::from({std::log(3.0F), 2, 0, 6}, {2, 2}), DType::kFloat32);
  const auto attend = [&](const Variable& keys, int64_t count) {
    return layer.attention(layer.context, query, share({0, 1}), keys, share({0, count}))
        .value()
        .to_vector()[0];
  };
  EXPECT_NEAR(attend(memory, 2), 3.0F, 1e-6);
  const Variable first(memory.value().slice_rows(0, 1), DType::kFloat32);
  EXPECT_EQ(attend(first, 1), 2.0F);
}

TEST(MultiHeadAttention, WithoutACausalMaskOrderDoesNotMatter) {
  Layer layer(config_of(6, 3, 5, 7), Kind::kSelf, false);
  const Variable x = layer.input(4, 6, 1);
  std::vector<float> turned;
  for (const int64_t row : {2, 0, 3, 1}) {
    const std::vector<float> values = x.value().slice_rows(row, row + 1).to_vector();
    turned.insert(turned.end(), values.begin(), values.end());
  }
  const auto run = [&](const Variable& in) {
    return layer.attention(layer.context, in, share({0, 4}), places({0, 1, 2, 3})).value();
  };
  const Tensor plain = run(x), moved = run(Variable(Tensor::from(turned, {4, 6}), DType::kFloat32));
  int64_t place = 0;
  for (const int64_t row : {2, 0, 3, 1}) {
    EXPECT_LE(relative_error(moved.slice_rows(place, place + 1).to_vector(),
                             plain.slice_rows(row, row + 1).to_vector()),
              1e-6);
    ++place;
  }
}

// A step at a time over a cache against all at once, for two sequences that share the cache.
TEST(MultiHeadAttention, StepsAgreeWithTheWhole) {
  for (const TransformerConfig& config : configs()) {
    for (const DType dtype : compute_dtypes()) {
      SCOPED_TRACE(describe(config, dtype));
      Layer layer(config, Kind::kSelf, true, dtype);
      constexpr int64_t kLength = 5;
      const Variable x = layer.input(2 * kLength, config.d_model, 3);
      const Tensor whole = layer
                               .attention(layer.context, x, share({0, kLength, 2 * kLength}),
                                          places({0, 1, 2, 3, 4, 0, 1, 2, 3, 4}))
                               .value();
      KeyValueCache cache = layer.attention.make_cache(layer.context, dtype, 2 * kLength);
      for (int64_t i = 0; i < kLength; ++i) {
        const Tensor rows({2, config.d_model}, dtype);
        CacheView view;
        for (int64_t sequence = 0; sequence < 2; ++sequence) {
          const int64_t from = sequence * kLength + i;
          rows.slice_rows(sequence, sequence + 1)
              .assign(x.value().slice_rows(from, from + 1).to_vector());
          for (int64_t j = 0; j <= i; ++j) {
            view.slots.push_back(static_cast<int32_t>(2 * j + sequence));
          }
          view.offsets.push_back(static_cast<int64_t>(view.slots.size()));
        }
        const auto place = static_cast<int32_t>(i);
        const std::vector<int32_t> slots = {2 * place, 2 * place + 1};
        const Tensor out = layer.attention
                               .step(layer.context, Variable(rows, dtype), places({place, place}),
                                     cache, slots, view)
                               .value();
        for (int64_t sequence = 0; sequence < 2; ++sequence) {
          const int64_t row = sequence * kLength + i;
          EXPECT_LE(relative_error(out.slice_rows(sequence, sequence + 1).to_vector(),
                                   whole.slice_rows(row, row + 1).to_vector()),
                    dtype == DType::kFloat32 ? 3e-6 : 2e-2);
        }
      }
    }
  }
}

TEST(MultiHeadAttention, CrossStepsAgreeWithTheWhole) {
  for (const TransformerConfig& config : configs()) {
    for (const DType dtype : compute_dtypes()) {
      SCOPED_TRACE(describe(config, dtype));
      Layer layer(config, Kind::kCross, false, dtype);
      const Variable x = layer.input(3, config.d_model, 3),
                     memory = layer.input(7, config.d_model, 4);
      const Tensor whole =
          layer.attention(layer.context, x, share({0, 2, 3}), memory, share({0, 4, 7})).value();
      // The sequences lie anywhere in the cache.
      const KeyValueCache cache = layer.attention.make_cache(layer.context, dtype, 12);
      const std::vector<int32_t> first = {8, 1};
      layer.attention.write_memory(layer.context, memory, share({0, 4, 7}), first, cache);
      const MemoryView view{{8, 8, 1}, {4, 4, 3}};
      std::vector<float> weights(11);
      const Tensor out = layer.attention.step(layer.context, x, cache, view, weights).value();
      for (const auto& [at, count] : {std::pair(0, 4), {4, 4}, {8, 3}}) {
        EXPECT_NEAR(std::accumulate(weights.begin() + at, weights.begin() + at + count, 0.0F), 1,
                    1e-5);
      }
      EXPECT_LE(relative_error(out.to_vector(), whole.to_vector()),
                dtype == DType::kFloat32 ? 3e-6 : 2e-2);
    }
  }
}

TEST(MultiHeadAttention, RotaryScoresDependOnTheDistanceAlone) {
  TransformerConfig config = config_of(6, 2, 4, 3);
  config.positions = Positions::kRotary;
  Layer layer(config, Kind::kSelf, true);
  const Variable x = layer.input(4, 6, 3);
  const auto run = [&](std::vector<int32_t> positions) {
    return layer.attention(layer.context, x, share({0, 4}), places(std::move(positions)))
        .value()
        .to_vector();
  };
  EXPECT_LE(relative_error(run({100, 101, 102, 103}), run({0, 1, 2, 3})), 1e-4);
  EXPECT_GT(relative_error(run({0, 2, 4, 6}), run({0, 1, 2, 3})), 1e-3);
}

}  // namespace
}  // namespace attend::testing
