#include "attend/kernels/additive_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "attend/base/error.h"
#include "tests/kernels/attention_reference.h"

namespace attend {
namespace {

struct Batch {
  Batch(int64_t heads, int64_t key_width, int64_t value_width, std::vector<int64_t> queries,
        std::vector<int64_t> keys, DType dtype)
      : query_offsets(offsets_of(queries)), key_offsets(offsets_of(keys)) {
    const int64_t rows = query_offsets.back(), key_rows = key_offsets.back();
    const int64_t wide = heads * key_width, deep = heads * value_width;
    q = random_tensor(rows, wide, dtype, 1);
    k = random_tensor(key_rows, wide, dtype, 2);
    v = random_tensor(key_rows, deep, dtype, 3);
    w = random_tensor(heads, key_width, DType::kFloat32, 4);
    d_out = random_tensor(rows, deep, dtype, 5);
    out = Tensor({rows, deep}, dtype);
    d_q = Tensor({rows, wide}, dtype);
    d_k = Tensor({key_rows, wide}, dtype);
    d_v = Tensor({key_rows, deep}, dtype);
    d_w = Tensor::zeros({heads, key_width}, DType::kFloat32);
    shape = {heads, key_width, value_width, query_offsets, key_offsets, false, 1.0F, {}};
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  void forward() const { additive_attention_forward(shape, q, k, v, w, out); }
  void backward() const {
    additive_attention_backward(shape, q, k, v, w, d_out, d_q, d_k, d_v, d_w);
  }

  std::vector<int64_t> query_offsets, key_offsets;
  AttentionShape shape;
  Tensor q, k, v, w, out, d_out, d_q, d_k, d_v, d_w;
};

void expect_reference(const Batch& batch) {
  AttentionReference reference(batch.shape, batch.q, batch.k, batch.v, &batch.w);
  const std::vector<float> d_out = batch.d_out.to_vector();
  reference.run(&d_out);
  const double bound = batch.q.dtype() == DType::kFloat32 ? 5e-6 : 3e-3;
  std::vector<double> d_w = reference.d_w;
  for (double& value : d_w) value += 1.5;
  for_each_target([&] {
    batch.forward();
    EXPECT_LT(relative_error(batch.out.to_vector(), reference.out), bound);
    batch.d_w.assign(std::vector<float>(d_w.size(), 1.5F));
    batch.backward();
    EXPECT_LT(relative_error(batch.d_q.to_vector(), reference.d_q), bound);
    EXPECT_LT(relative_error(batch.d_k.to_vector(), reference.d_k), bound);
    EXPECT_LT(relative_error(batch.d_v.to_vector(), reference.d_v), bound);
    EXPECT_LT(relative_error(batch.d_w.to_vector(), d_w), 5e-6);  // added to what was there
  });
}

TEST(AdditiveAttention, MatchesTheReference) {
  const std::vector<int64_t> queries{1, 2, 7, 16, 17, 31, 48, 5}, keys{3, 1, 7, 20, 16, 33, 40, 64};
  for (const int64_t width : {1, 3, 17, 32}) {
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      Batch batch(3, width, width + 1, queries, keys, dtype);
      expect_reference(batch);
      batch.shape.causal = true;
      batch.shape.scale = 0.7F;
      expect_reference(batch);
      batch.shape.dropout = {0.2F, {3, 4, 5}};
      expect_reference(batch);
    }
  }
}

// With q and k of 0 every score is 0; with w = 1 and large opposite keys they are 1 and -1.
TEST(AdditiveAttention, WorkedExample) {
  const std::vector<int64_t> one{0, 1}, two{0, 2};
  const AttentionShape shape{1, 1, 1, one, two, false, 1.0F, {}};
  const Tensor q = Tensor::from({0}, {1, 1}), v = Tensor::from({2, 6}, {2, 1});
  const Tensor w = Tensor::from({1}, {1, 1}), out({1, 1}, DType::kFloat32);
  additive_attention_forward(shape, q, Tensor::from({0, 0}, {2, 1}), v, w, out);
  EXPECT_NEAR(out.to_vector()[0], 4.0F, 1e-6F);
  additive_attention_forward(shape, q, Tensor::from({100, -1000}, {2, 1}), v, w, out);
  const float first = std::exp(1.0F) / (std::exp(1.0F) + std::exp(-1.0F));
  EXPECT_NEAR(out.to_vector()[0], 2 * first + 6 * (1 - first), 1e-6F);
}

TEST(AdditiveAttention, GradientsFitFiniteDifferences) {
  Batch batch(2, 5, 3, {4, 9}, {6, 3}, DType::kFloat32);
  batch.shape.dropout = {0.3F, {11, 12, 13}};
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
  check(batch.w, batch.d_w);
}

TEST(AdditiveAttention, CausalQueriesDoNotReadTheFuture) {
  Batch batch(2, 8, 8, {21}, {21}, DType::kFloat32);
  batch.shape.causal = true;
  for_each_target([&] {
    Batch changed(2, 8, 8, {21}, {21}, DType::kFloat32);
    changed.shape.causal = true;
    batch.forward();
    for (int64_t from = 20; from > 0; --from) {
      for (const Tensor* tensor : {&changed.q, &changed.k, &changed.v}) {
        tensor->slice_rows(from, from + 1)
            .assign(std::vector<float>(16, std::numeric_limits<float>::quiet_NaN()));
      }
      changed.forward();
      EXPECT_EQ(changed.out.slice_rows(0, from).to_vector(),
                batch.out.slice_rows(0, from).to_vector());
    }
  });
}

// The weights of one head, times the values, are the output; so they are in the right places.
TEST(AdditiveAttention, WeightsAreThoseOfTheOutput) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    const Batch batch(1, 5, 4, {3, 1, 20}, {7, 2, 33}, dtype);
    const Tensor weights({count_weights(batch.shape)}, DType::kFloat32);
    for_each_target([&] {
      batch.forward();
      additive_attention_weights(batch.shape, batch.q, batch.k, batch.w, weights);
      const std::vector<float> found = weights.to_vector(), values = batch.v.to_vector();
      std::vector<double> expected;
      std::size_t at = 0;
      for (std::size_t s = 0; s < 3; ++s) {
        for (int64_t row = batch.query_offsets[s]; row < batch.query_offsets[s + 1]; ++row) {
          std::vector<double> out(4);
          for (int64_t key = batch.key_offsets[s]; key < batch.key_offsets[s + 1]; ++key, ++at) {
            for (std::size_t c = 0; c < 4; ++c) {
              out[c] += static_cast<double>(found[at]) *
                        static_cast<double>(values[static_cast<std::size_t>(key) * 4 + c]);
            }
          }
          expected.insert(expected.end(), out.begin(), out.end());
        }
      }
      EXPECT_EQ(at, found.size());
      EXPECT_LT(relative_error(batch.out.to_vector(), expected),
                dtype == DType::kFloat32 ? 5e-6 : 3e-3);
    });
  }
}

TEST(AdditiveAttention, HeadsHaveAMean) {
  const std::vector<int64_t> queries{0, 1, 3}, keys{0, 2, 3};
  const AttentionShape shape{2, 1, 1, queries, keys, false, 1.0F, {}};
  const Tensor weights = Tensor::from({0.25F, 0.75F, 0.75F, 0.25F, 1, 1, 1, 0}, {8});
  const Tensor mean({4}, DType::kFloat32);
  mean_over_heads(shape, weights, mean);
  EXPECT_EQ(mean.to_vector(), (std::vector<float>{0.5F, 0.5F, 1, 0.5F}));
  EXPECT_THROW(mean_over_heads(shape, weights, weights), Error);
}

TEST(AdditiveAttention, RefusesAnotherScoreVector) {
  Batch batch(2, 8, 8, {2}, {2}, DType::kFloat32);
  batch.w = Tensor::zeros({2, 7}, DType::kFloat32);
  EXPECT_THROW(batch.forward(), Error);
  EXPECT_THROW(batch.backward(), Error);
}

}  // namespace
}  // namespace attend
