#pragma once

#include <cstdint>
#include <span>

#include "attend/tensor/tensor.h"

namespace attend {

/// to[rows[r]] = from[r], in the dtype of `to`. from [count, columns] and to [any, columns] may be
/// column slices. Throws Error where the shapes do not fit one another or a row is not in `to`.
void scatter_rows(const Tensor& from, std::span<const int32_t> rows, const Tensor& to);

}  // namespace attend
