#pragma once

#include <cstdint>
#include <span>

#include "attend/tensor/tensor.h"

namespace attend {

/// Which rows of a cache each hypothesis attends to. Keys and values are written once, a slot a
/// token, and never move; a hypothesis holds the list of its ancestors' slots. Row r attends to
/// slots[offsets[r]] up to slots[offsets[r + 1] - 1], at least one, in any order.
struct CachedAttentionShape {
  int64_t heads = 1;
  int64_t key_width = 0;             ///< of a head's queries and keys, d_k
  int64_t value_width = 0;           ///< of a head's values, d_v
  std::span<const int64_t> offsets;  ///< one entry more than there are rows, starting with 0
  std::span<const int32_t> slots;
  float scale = 1.0F;  ///< of the scores before softmax, usually 1 / sqrt(d_k)
};

/// Scaled dot-product attention of one query a row over cached keys and values, for decoding.
///
/// q [rows, heads * key_width], key_cache [slots, heads * key_width], value_cache [slots,
/// heads * value_width] and out [rows, heads * value_width] are float32 or bfloat16 (q and out the
/// same, the caches the same) and may be column slices. Arithmetic is float32. A row's result does
/// not depend on the other rows, to the bit. Throws Error where shapes do not fit one another, a
/// row has no slots, or a slot is not in the cache.
void cached_attention(const CachedAttentionShape& shape, const Tensor& q, const Tensor& key_cache,
                      const Tensor& value_cache, const Tensor& out);

/// The same with the additive score (see additive_attention_forward).
/// score_vector: float32 [heads, key_width].
void cached_additive_attention(const CachedAttentionShape& shape, const Tensor& q,
                               const Tensor& key_cache, const Tensor& value_cache,
                               const Tensor& score_vector, const Tensor& out);

/// Which rows of the encoder's keys and values each hypothesis attends to: row r, the cache rows
/// first[r] up to first[r] + count[r] - 1, at least one.
struct MemoryAttentionShape {
  int64_t heads = 1;
  int64_t key_width = 0;           ///< of a head's queries and keys, d_k
  int64_t value_width = 0;         ///< of a head's values, d_v
  std::span<const int64_t> first;  ///< one a row
  std::span<const int64_t> count;  ///< one a row
  float scale = 1.0F;              ///< of the scores before softmax, usually 1 / sqrt(d_k)
};

/// Encoder-decoder attention of one query a row, for decoding: cached_attention over neighbouring
/// cache rows, to the bit. Neighbouring rows with the same first and count (the hypotheses of one
/// sentence) share the work of loading keys and values, which changes no bit either.
///
/// Where `mean_weights` is not empty it becomes the attention weights, mean over the heads: the
/// count[0] of row 0, then the count[1] of row 1, and so on; float32. Tensors and errors are those
/// of cached_attention; throws Error, too, where mean_weights has another size.
void memory_attention(const MemoryAttentionShape& shape, const Tensor& q, const Tensor& key_cache,
                      const Tensor& value_cache, const Tensor& out,
                      std::span<float> mean_weights = {});

/// The same with the additive score (see additive_attention_forward).
/// score_vector: float32 [heads, key_width].
void memory_additive_attention(const MemoryAttentionShape& shape, const Tensor& q,
                               const Tensor& key_cache, const Tensor& value_cache,
                               const Tensor& score_vector, const Tensor& out,
                               std::span<float> mean_weights = {});

}  // namespace attend
