#include "attend/kernels/attention_common.h"

#include <algorithm>

#include <hwy/aligned_allocator.h>

#include "attend/base/error.h"

namespace attend {
namespace {

void check_offsets(const char* what, const char* name, std::span<const int64_t> offsets,
                   int64_t tokens) {
  const bool ascending = std::is_sorted(offsets.begin(), offsets.end());
  if (offsets.empty() || offsets.front() != 0 || offsets.back() != tokens || !ascending) {
    fail("{}: {} offsets must ascend from 0 to the {} tokens that there are", what, name, tokens);
  }
}

}  // namespace

void check_matrix(const char* what, const char* name, const Tensor& tensor, int64_t rows,
                  int64_t columns, DType dtype) {
  if (!tensor.defined() || tensor.rows() != rows || tensor.columns() != columns ||
      tensor.dtype() != dtype) {
    fail("{}: {} is {} {}, expected {} [{}, {}]", what, name, name_of(tensor.dtype()),
         to_string(tensor.shape()), name_of(dtype), rows, columns);
  }
}

void check_queries_and_keys(const char* what, const AttentionShape& shape, const Tensor& q,
                            const Tensor& k) {
  if (shape.heads < 1 || shape.key_width < 1 || shape.value_width < 1) {
    fail("{}: {} heads of widths {} and {}; all must be positive", what, shape.heads,
         shape.key_width, shape.value_width);
  }
  check_offsets(what, "query", shape.query_offsets, q.rows());
  check_offsets(what, "key", shape.key_offsets, k.rows());
  if (shape.query_offsets.size() != shape.key_offsets.size()) {
    fail("{}: {} sequences of queries and {} of keys", what, shape.query_offsets.size() - 1,
         shape.key_offsets.size() - 1);
  }
  for (std::size_t s = 0; s + 1 < shape.query_offsets.size(); ++s) {
    const bool queries = shape.query_offsets[s] < shape.query_offsets[s + 1];
    if (queries && shape.key_offsets[s] == shape.key_offsets[s + 1]) {
      fail("{}: sequence {} has queries but no keys", what, s);
    }
  }
  check_matrix(what, "q", q, shape.query_offsets.back(), shape.heads * shape.key_width, q.dtype());
  check_matrix(what, "k", k, shape.key_offsets.back(), shape.heads * shape.key_width, q.dtype());
}

void check_attention(const char* what, const AttentionShape& shape, const Tensor& q,
                     const Tensor& k, const Tensor& v) {
  check_queries_and_keys(what, shape, q, k);
  check_matrix(what, "v", v, k.rows(), shape.heads * shape.value_width, q.dtype());
}

void check_gradients(const char* what, const AttentionShape& shape, const Tensor& q,
                     const Tensor& k, const Tensor& v, const Tensor& d_out, const Tensor& d_q,
                     const Tensor& d_k, const Tensor& d_v) {
  check_matrix(what, "d_out", d_out, q.rows(), shape.heads * shape.value_width, q.dtype());
  check_matrix(what, "d_q", d_q, q.rows(), q.columns(), q.dtype());
  check_matrix(what, "d_k", d_k, k.rows(), k.columns(), q.dtype());
  check_matrix(what, "d_v", d_v, v.rows(), v.columns(), q.dtype());
}

int64_t count_weights(const AttentionShape& shape) {
  int64_t count = 0;
  for (std::size_t s = 0; s + 1 < shape.query_offsets.size(); ++s) {
    count += (shape.query_offsets[s + 1] - shape.query_offsets[s]) *
             (shape.key_offsets[s + 1] - shape.key_offsets[s]);
  }
  return shape.heads * count;
}

void check_weights(const char* what, const AttentionShape& shape, const Tensor& q, const Tensor& k,
                   const Tensor& weights) {
  check_queries_and_keys(what, shape, q, k);
  const int64_t count = count_weights(shape);
  if (weights.count() != count || weights.dtype() != DType::kFloat32 || !weights.contiguous()) {
    fail("{}: weights is {} {}, expected {} contiguous float32 numbers", what,
         name_of(weights.dtype()), to_string(weights.shape()), count);
  }
}

void mean_over_heads(const AttentionShape& shape, const Tensor& weights, const Tensor& mean) {
  if (weights.count() != count_weights(shape) || mean.count() * shape.heads != weights.count()) {
    fail("mean_over_heads: {} weights and {} means of {} heads; expected {} and a head's share",
         weights.count(), mean.count(), shape.heads, count_weights(shape));
  }
  const float* from = weights.data<float>();
  float* to = mean.data<float>();
  const float share = 1.0F / static_cast<float>(shape.heads);
  for (std::size_t s = 0; s + 1 < shape.query_offsets.size(); ++s) {
    const int64_t count = (shape.query_offsets[s + 1] - shape.query_offsets[s]) *
                          (shape.key_offsets[s + 1] - shape.key_offsets[s]);
    std::fill_n(to, count, 0.0F);
    for (int64_t head = 0; head < shape.heads; ++head) {
      for (int64_t i = 0; i < count; ++i) to[i] += *from++ * share;
    }
    to += count;
  }
}

float* attention_scratch(int64_t count) {
  thread_local hwy::AlignedFreeUniquePtr<float[]> memory;
  thread_local int64_t capacity = 0;
  if (count > capacity) {
    const int64_t grown = std::max(count, capacity + capacity / 2);
    memory = hwy::AllocateAligned<float>(static_cast<std::size_t>(grown));
    capacity = memory == nullptr ? 0 : grown;
    if (memory == nullptr) fail("attention: no memory for {} floats of scratch", grown);
  }
  return memory.get();
}

}  // namespace attend
