#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "attend/base/error.h"
#include "attend/kernels/attention_common.h"
#include "attend/kernels/cached_attention.h"

namespace attend {
namespace {

/// The same rows of the cache, as lists of slots.
struct SlotLists {
  std::vector<int64_t> offsets{0};
  std::vector<int32_t> slots;
};

SlotLists list_slots(const char* what, const MemoryAttentionShape& shape, const Tensor& q,
                     const Tensor& keys, std::size_t mean_weights) {
  const auto rows = static_cast<std::size_t>(q.rows());
  if (shape.first.size() != rows || shape.count.size() != rows) {
    fail("{}: {} first rows and {} counts for {} rows", what, shape.first.size(),
         shape.count.size(), rows);
  }
  SlotLists lists;
  for (std::size_t row = 0; row < rows; ++row) {
    const int64_t first = shape.first[row], count = shape.count[row];
    if (count < 1 || first < 0 || count > keys.rows() - first) {
      fail("{}: row {} attends to {} rows from row {} of a cache of {}", what, row, count, first,
           keys.rows());
    }
    for (int64_t i = 0; i < count; ++i) lists.slots.push_back(static_cast<int32_t>(first + i));
    lists.offsets.push_back(static_cast<int64_t>(lists.slots.size()));
  }
  if (mean_weights != 0 && mean_weights != lists.slots.size()) {
    fail("{}: room for {} mean weights, expected {}", what, mean_weights, lists.slots.size());
  }
  return lists;
}

float score(const MemoryAttentionShape& shape, const float* q, const float* key, const float* w) {
  float sum = 0;
  for (int64_t c = 0; c < shape.key_width; ++c) {
    sum += w == nullptr ? q[c] * key[c] : w[c] * std::tanh(q[c] + key[c]);
  }
  return sum * shape.scale;
}

void find_mean_weights(const MemoryAttentionShape& shape, const Tensor& q, const Tensor& keys,
                       const Tensor* score_vector, std::span<float> mean_weights) {
  std::fill(mean_weights.begin(), mean_weights.end(), 0.0F);
  if (mean_weights.empty()) return;
  const std::vector<float> all_q = q.to_vector(), all_keys = keys.to_vector();
  float* mean = mean_weights.data();
  for (std::size_t row = 0; row < shape.first.size(); ++row) {
    std::vector<float> scores(static_cast<std::size_t>(shape.count[row]));
    for (int64_t head = 0; head < shape.heads; ++head) {
      const int64_t column = head * shape.key_width;
      const float* w = score_vector == nullptr
                           ? nullptr
                           : score_vector->data<float>() + head * score_vector->row_stride();
      for (std::size_t i = 0; i < scores.size(); ++i) {
        const auto at = static_cast<int64_t>(i) + shape.first[row];
        scores[i] = score(shape, &all_q[row * static_cast<std::size_t>(q.columns())] + column,
                          &all_keys[static_cast<std::size_t>(at * keys.columns() + column)], w);
      }
      const float most = *std::max_element(scores.begin(), scores.end());
      for (float& value : scores) value = std::exp(value - most);
      const float sum = std::accumulate(scores.begin(), scores.end(), 0.0F);
      for (std::size_t i = 0; i < scores.size(); ++i) {
        mean[i] += scores[i] / (sum * static_cast<float>(shape.heads));
      }
    }
    mean += scores.size();
  }
}

}  // namespace

void memory_attention(const MemoryAttentionShape& shape, const Tensor& q, const Tensor& key_cache,
                      const Tensor& value_cache, const Tensor& out, std::span<float> mean_weights) {
  const SlotLists lists = list_slots("memory_attention", shape, q, key_cache, mean_weights.size());
  cached_attention(
      {shape.heads, shape.key_width, shape.value_width, lists.offsets, lists.slots, shape.scale}, q,
      key_cache, value_cache, out);
  find_mean_weights(shape, q, key_cache, nullptr, mean_weights);
}

void memory_additive_attention(const MemoryAttentionShape& shape, const Tensor& q,
                               const Tensor& key_cache, const Tensor& value_cache,
                               const Tensor& score_vector, const Tensor& out,
                               std::span<float> mean_weights) {
  const SlotLists lists =
      list_slots("memory_additive_attention", shape, q, key_cache, mean_weights.size());
  cached_additive_attention(
      {shape.heads, shape.key_width, shape.value_width, lists.offsets, lists.slots, shape.scale}, q,
      key_cache, value_cache, score_vector, out);
  find_mean_weights(shape, q, key_cache, &score_vector, mean_weights);
}

}  // namespace attend
