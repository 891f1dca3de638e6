#pragma once

#include "attend/kernels/dropout.h"
#include "attend/tensor/tensor.h"

namespace attend {

enum class ActivationKind { kRelu, kGelu, kSilu };

/// out = dropout(f(x)), [rows, columns], one dtype. f is max(0, x); x · Φ(x), the exact GELU of
/// Hendrycks & Gimpel 2016; or x · σ(x) (SiLU). With relu, out may be x itself.
void activation_forward(ActivationKind kind, const Dropout& dropout, const Tensor& x,
                        const Tensor& out);

/// gradient (of out) becomes the gradient of x, in place. For relu `saved` is out, else it is x.
void activation_backward(ActivationKind kind, const Dropout& dropout, const Tensor& saved,
                         const Tensor& gradient);

/// sums[column] += Σ_rows x[row, column], float32: the gradient of a bias.
void add_column_sums(const Tensor& x, const Tensor& sums);

/// to = from in the dtype of `to`; with `accumulate`, to += from.
void convert(const Tensor& from, const Tensor& to, bool accumulate = false);

}  // namespace attend
