#pragma once

#include "attend/base/profile.h"
#include "attend/tensor/tensor.h"

namespace attend {

/// Counts the bytes of tensors, each read or written once, for the innermost profile scope. One
/// that is added to is named twice; undefined ones count nothing.
template <typename... Tensors>
void profile_traffic(const Tensors&... tensors) {
  profile_bytes(static_cast<double>((tensors.bytes() + ...)));
}

}  // namespace attend
