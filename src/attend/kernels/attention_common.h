#pragma once

#include <cstdint>

#include "attend/kernels/attention.h"

namespace attend {

/// Throws Error where the tensors' shapes and dtypes do not fit the shape or one another.
/// `what` names the op in the message.
void check_attention(const char* what, const AttentionShape& shape, const Tensor& q,
                     const Tensor& k, const Tensor& v);
/// The same of queries and keys alone.
void check_queries_and_keys(const char* what, const AttentionShape& shape, const Tensor& q,
                            const Tensor& k);
/// The same of the gradients, which have the shapes and dtypes of what they belong to.
void check_gradients(const char* what, const AttentionShape& shape, const Tensor& q,
                     const Tensor& k, const Tensor& v, const Tensor& d_out, const Tensor& d_q,
                     const Tensor& d_k, const Tensor& d_v);
/// The same of attention weights and what they are of.
void check_weights(const char* what, const AttentionShape& shape, const Tensor& q, const Tensor& k,
                   const Tensor& weights);
/// Throws Error unless `tensor` has these rows and columns and this dtype.
void check_matrix(const char* what, const char* name, const Tensor& tensor, int64_t rows,
                  int64_t columns, DType dtype);

/// At least `count` floats, aligned for vectors, of the calling thread's scratch memory. What it
/// held is lost; the next call on this thread may give the same memory again.
float* attention_scratch(int64_t count);

}  // namespace attend
