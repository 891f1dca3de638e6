#pragma once

#include <cstdint>

#include "attend/tensor/tensor.h"

namespace attend {

/// What cached_attention and memory_attention have in common.
struct CachedCall {
  int64_t heads, key_width, value_width;
  float scale;
  const Tensor &q, &keys, &values, &out;
  const Tensor* score_vector;  ///< of the additive score; null for the dot product
};

/// Throws Error where widths, shapes and dtypes do not fit one another. `what` names the op.
void check_cached_call(const char* what, const CachedCall& call);

}  // namespace attend
