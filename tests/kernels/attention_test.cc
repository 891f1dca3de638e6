#include "attend/kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "attend/base/error.h"
#include "tests/kernels/attention_reference.h"

namespace attend {
namespace {

/// 1, 2, ... n, each once, so that a batch has every remainder of every tile and vector.
std::vector<int64_t> lengths_up_to(int64_t n) {
  std::vector<int64_t> lengths(static_cast<std::size_t>(n));
  std::iota(lengths.begin(), lengths.end(), 1);
  return lengths;
}

/// Random queries, keys and values as column slices of one wide tensor where they are equally many.
struct Batch {
  Batch(int64_t heads, int64_t key_width, int64_t value_width, std::vector<int64_t> queries,
        std::vector<int64_t> keys, DType dtype)
      : query_offsets(offsets_of(queries)), key_offsets(offsets_of(keys)) {
    const int64_t rows = query_offsets.back(), key_rows = key_offsets.back();
    const int64_t wide = heads * key_width, deep = heads * value_width;
    q = random_tensor(rows, 3 * wide, dtype, 1).slice_columns(wide, 2 * wide);
    const Tensor memory = random_tensor(key_rows, wide + deep, dtype, 2);
    k = memory.slice_columns(0, wide);
    v = memory.slice_columns(wide, wide + deep);
    d_out = random_tensor(rows, deep, dtype, 3);
    out = Tensor({rows, deep}, dtype);
    d_q = Tensor({rows, 2 * wide}, dtype).slice_columns(wide, 2 * wide);
    const Tensor d_memory({key_rows, wide + deep}, dtype);
    d_k = d_memory.slice_columns(0, wide);
    d_v = d_memory.slice_columns(wide, wide + deep);
    shape = {heads,
             key_width,
             value_width,
             query_offsets,
             key_offsets,
             false,
             1.0F / std::sqrt(static_cast<float>(key_width)),
             {}};
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  void forward() const { attention_forward(shape, q, k, v, out); }
  void backward() const { attention_backward(shape, q, k, v, d_out, d_q, d_k, d_v); }

  std::vector<int64_t> query_offsets, key_offsets;
  AttentionShape shape;
  Tensor q, k, v, out, d_out, d_q, d_k, d_v;
};

/// Holds forward and backward to the reference on every instruction set.
void expect_reference(const Batch& batch) {
  AttentionReference reference(batch.shape, batch.q, batch.k, batch.v);
  const std::vector<float> d_out = batch.d_out.to_vector();
  reference.run(&d_out);
  const double bound = batch.q.dtype() == DType::kFloat32 ? 3e-6 : 3e-3;
  for_each_target([&] {
    batch.forward();
    EXPECT_LT(relative_error(batch.out.to_vector(), reference.out), bound);
    batch.backward();
    // A width of one makes scores and their gradients small against what they are made of.
    EXPECT_LT(relative_error(batch.d_q.to_vector(), reference.d_q), 2 * bound);
    EXPECT_LT(relative_error(batch.d_k.to_vector(), reference.d_k), 2 * bound);
    EXPECT_LT(relative_error(batch.d_v.to_vector(), reference.d_v), bound);
  });
}

struct Widths {
  int64_t heads, key_width, value_width;
};

class AttentionWidths : public testing::TestWithParam<Widths> {};

TEST_P(AttentionWidths, MatchTheReferenceAtAllShortLengths) {
  const auto [heads, key_width, value_width] = GetParam();
  const auto lengths = lengths_up_to(70);
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    Batch batch(heads, key_width, value_width, lengths, lengths, dtype);
    expect_reference(batch);
    batch.shape.causal = true;
    expect_reference(batch);
    batch.shape.dropout = {0.3F, {0x123456789ABCDEF0, 5, 17}};
    expect_reference(batch);
  }
}

TEST_P(AttentionWidths, MatchTheReferenceAcrossLengths) {
  const auto [heads, key_width, value_width] = GetParam();
  const auto lengths = lengths_up_to(40);
  auto keys = lengths;
  std::rotate(keys.begin(), keys.begin() + 13, keys.end());
  for (const bool causal : {false, true}) {
    Batch batch(heads, key_width, value_width, lengths, keys, DType::kFloat32);
    batch.shape.causal = causal;
    expect_reference(batch);
    batch.shape.dropout = {0.1F, {42, 1, 2}};
    expect_reference(batch);
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, AttentionWidths,
                         testing::Values(Widths{1, 1, 1}, Widths{3, 3, 5}, Widths{2, 5, 3},
                                         Widths{2, 17, 33}, Widths{4, 32, 32}, Widths{2, 64, 64}));

TEST(Attention, MatchesTheReferenceOnLongSequences) {
  for (const bool causal : {false, true}) {
    Batch batch(2, 16, 24, {300, 7, 1100}, {300, 900, 1100}, DType::kFloat32);
    batch.shape.causal = causal;
    batch.shape.dropout = {0.2F, {9, 8, 7}};
    expect_reference(batch);
  }
}

// Two keys, ln 3 and 0, with values 2 and 6: weights 3/4 and 1/4, so 3; the first alone gives 2.
TEST(Attention, WorkedExample) {
  const std::vector<int64_t> one{0, 1}, two{0, 2};
  AttentionShape shape{1, 1, 1, one, two, false, 1.0F, {}};
  const Tensor q = Tensor::from({1}, {1, 1}), k = Tensor::from({std::log(3.0F), 0}, {2, 1});
  const Tensor v = Tensor::from({2, 6}, {2, 1}), out = Tensor::zeros({1, 1}, DType::kFloat32);
  const Tensor weights = Tensor::zeros({1, 2}, DType::kFloat32);
  attention_forward(shape, q, k, v, out);
  attention_weights(shape, q, k, weights);
  EXPECT_NEAR(out.to_vector()[0], 3.0F, 1e-6F);
  EXPECT_NEAR(weights.to_vector()[0], 0.75F, 1e-7F);
  EXPECT_NEAR(weights.to_vector()[1], 0.25F, 1e-7F);
  shape.causal = true;
  attention_forward(shape, q, k, v, out);
  EXPECT_EQ(out.to_vector()[0], 2.0F);
}

TEST(Attention, WeightsMatchTheReference) {
  for (const bool causal : {false, true}) {
    Batch batch(3, 20, 4, {5, 1, 33}, {5, 4, 33}, DType::kFloat32);
    batch.shape.causal = causal;
    AttentionReference reference(batch.shape, batch.q, batch.k, batch.v);
    reference.run();
    const Tensor weights({static_cast<int64_t>(reference.weights.size())}, DType::kFloat32);
    attention_weights(batch.shape, batch.q, batch.k, weights);
    EXPECT_LT(relative_error(weights.to_vector(), reference.weights), 1e-6);
  }
}

TEST(Attention, SequencesDoNotTouchOneAnother) {
  const std::vector<int64_t> lengths{19, 1, 42, 8, 8, 64};
  for (const bool causal : {false, true}) {
    Batch batch(2, 24, 40, lengths, lengths, DType::kBFloat16);
    batch.shape.causal = causal;
    for_each_target([&] {
      batch.forward();
      batch.backward();
      for (std::size_t s = 0; s < lengths.size(); ++s) {
        const int64_t begin = batch.query_offsets[s], end = batch.query_offsets[s + 1];
        const std::vector<int64_t> alone{0, end - begin};
        AttentionShape shape = batch.shape;
        shape.query_offsets = shape.key_offsets = alone;
        const auto part = [&](const Tensor& whole) { return whole.slice_rows(begin, end); };
        const Tensor q = part(batch.q), k = part(batch.k), v = part(batch.v);
        const Tensor out({end - begin, 80}, DType::kBFloat16), d_v(out.shape(), out.dtype());
        const Tensor d_q({end - begin, 48}, DType::kBFloat16), d_k(d_q.shape(), d_q.dtype());
        attention_forward(shape, q, k, v, out);
        attention_backward(shape, q, k, v, part(batch.d_out), d_q, d_k, d_v);
        EXPECT_EQ(out.to_vector(), part(batch.out).to_vector());
        EXPECT_EQ(d_q.to_vector(), part(batch.d_q).to_vector());
        EXPECT_EQ(d_k.to_vector(), part(batch.d_k).to_vector());
        EXPECT_EQ(d_v.to_vector(), part(batch.d_v).to_vector());
      }
    });
  }
}

TEST(Attention, CausalQueriesDoNotReadTheFuture) {
  constexpr int64_t kLength = 53;
  Batch batch(2, 8, 8, {kLength}, {kLength}, DType::kFloat32);
  batch.shape.causal = true;
  for_each_target([&] {
    batch.forward();
    for (int64_t from = 1; from < kLength; ++from) {
      Batch changed(2, 8, 8, {kLength}, {kLength}, DType::kFloat32);
      changed.shape.causal = true;
      for (const Tensor* tensor : {&changed.q, &changed.k, &changed.v}) {
        const Tensor future = tensor->slice_rows(from, kLength);
        future.assign(std::vector<float>(static_cast<std::size_t>(future.count()),
                                         std::numeric_limits<float>::quiet_NaN()));
      }
      changed.forward();
      EXPECT_EQ(changed.out.slice_rows(0, from).to_vector(),
                batch.out.slice_rows(0, from).to_vector());
      // Nor does it matter whether there is a future at all.
      const std::vector<int64_t> prefix{0, from};
      AttentionShape shape = batch.shape;
      shape.query_offsets = shape.key_offsets = prefix;
      const Tensor out({from, 16}, DType::kFloat32);
      attention_forward(shape, batch.q.slice_rows(0, from), batch.k.slice_rows(0, from),
                        batch.v.slice_rows(0, from), out);
      EXPECT_EQ(out.to_vector(), batch.out.slice_rows(0, from).to_vector());
    }
  });
}

TEST(Attention, HugeScoresStayFinite) {
  Batch batch(1, 4, 2, {21}, {21}, DType::kFloat32);
  batch.q = random_tensor(21, 4, DType::kFloat32, 1, 1e18F);
  batch.k = random_tensor(21, 4, DType::kFloat32, 2, 1e18F);
  AttentionReference reference(batch.shape, batch.q, batch.k, batch.v);
  reference.run();
  for_each_target([&] {
    batch.forward();
    EXPECT_LT(relative_error(batch.out.to_vector(), reference.out), 1e-6);
    batch.backward();
    for (const float value : batch.d_k.to_vector()) EXPECT_EQ(value, 0.0F);
  });
}

TEST(Attention, DropsTheRateOfWeightsAndScalesTheRest) {
  // Equal scores and one value a key make the output row the list of weights.
  constexpr int64_t kLength = 64, kHeads = 4;
  Batch batch(kHeads, 1, kLength, {kLength, kLength}, {kLength, kLength}, DType::kFloat32);
  batch.q.zero();
  batch.v.zero();
  for (int64_t row = 0; row < 2 * kLength; ++row) {
    for (int64_t head = 0; head < kHeads; ++head) {
      batch.v.slice_rows(row, row + 1).data<float>()[head * kLength + row % kLength] = kLength;
    }
  }
  batch.shape.dropout = {0.25F, {1, 2, 3}};
  batch.forward();
  const std::vector<float> first = batch.out.to_vector();
  int dropped = 0;
  for (const float value : first) {
    dropped += value == 0;
    EXPECT_NEAR(value, value == 0 ? 0 : 1 / 0.75F, 1e-5F);
  }
  EXPECT_NEAR(dropped / static_cast<double>(first.size()), 0.25, 0.01);
  batch.shape.dropout.key.op = 4;
  batch.forward();
  EXPECT_NE(batch.out.to_vector(), first);
}

// The mask of the backward pass must be the forward's: only then does the gradient fit differences.
TEST(Attention, GradientsFitFiniteDifferencesUnderDropout) {
  Batch batch(2, 3, 4, {5, 9}, {5, 9}, DType::kFloat32);
  batch.shape.causal = true;
  batch.shape.dropout = {0.4F, {11, 12, 13}};
  batch.backward();
  const std::vector<float> d_out = batch.d_out.to_vector();
  const auto loss = [&] {
    batch.forward();
    const std::vector<float> out = batch.out.to_vector();
    return std::inner_product(out.begin(), out.end(), d_out.begin(), 0.0);
  };
  const auto check = [&](const Tensor& x, const Tensor& gradient) {
    std::vector<double> differences;
    std::vector<float> values = x.to_vector();
    for (float& value : values) {
      const float kept = value;
      value = kept + 0.01F;
      x.assign(values);
      const double above = loss();
      value = kept - 0.01F;
      x.assign(values);
      differences.push_back((above - loss()) / 0.02);
      value = kept;
    }
    x.assign(values);
    EXPECT_LT(relative_error(gradient.to_vector(), differences), 1e-3);
  };
  check(batch.q, batch.d_q);
  check(batch.k, batch.d_k);
  check(batch.v, batch.d_v);
}

TEST(Attention, EmptyBatchesAndSequencesAreNothing) {
  Batch none(2, 4, 4, {}, {}, DType::kFloat32);
  none.forward();
  none.backward();
  Batch gaps(2, 4, 4, {0, 3, 0}, {2, 3, 0}, DType::kFloat32);
  expect_reference(gaps);
}

TEST(Attention, RefusesShapesThatDoNotFit) {
  Batch no_keys(1, 4, 4, {2, 2}, {2, 0}, DType::kFloat32);
  EXPECT_THROW(no_keys.forward(), Error);
  EXPECT_THROW(no_keys.backward(), Error);
  Batch batch(1, 4, 4, {2}, {2}, DType::kFloat32);
  batch.shape.key_width = 5;
  EXPECT_THROW(batch.forward(), Error);
  batch.shape.key_width = 4;
  const std::vector<int64_t> short_of{0, 1};
  batch.shape.query_offsets = short_of;
  EXPECT_THROW(batch.forward(), Error);
  batch.shape.query_offsets = batch.query_offsets;
  batch.out = Tensor({2, 4}, DType::kBFloat16);
  EXPECT_THROW(batch.forward(), Error);
  EXPECT_THROW(attention_weights(batch.shape, batch.q, batch.k, batch.q), Error);
}

}  // namespace
}  // namespace attend
