#pragma once

#include <cmath>
#include <cstdint>

#include "attend/base/random.h"

namespace attend {

/// Dropout of one op (Srivastava et al. 2014), inverted: what is kept is scaled by 1 / (1 - rate).
/// The rate is rounded to 1/65536. Whether an element is kept is a function of key, row and column,
/// so that the backward pass draws the same mask again instead of reading one.
struct Dropout {
  float rate = 0.0F;
  RandomKey key;

  bool active() const { return rate > 0.0F; }
  /// An element is kept where its 16 random bits are at least this.
  uint32_t threshold() const { return static_cast<uint32_t>(std::lround(rate * 65536.0F)); }
  float scale() const { return 65536.0F / (65536.0F - static_cast<float>(threshold())); }
  /// Whether a row is kept, where one draw decides for all of it: that of its column 0.
  bool keeps(int64_t row) const {
    if (!active()) return true;
    const auto words =
        philox4x32({0, static_cast<uint32_t>(row), key.op, key.lane},
                   {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)});
    return (words[0] & 0xFFFFU) >= threshold();
  }
};

}  // namespace attend
