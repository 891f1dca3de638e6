#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "attend/base/random.h"
#include "attend/kernels/compute_thread.h"
#include "attend/kernels/gemm.h"
#include "attend/tensor/tensor.h"

namespace attend::testing {

/// Tests run beside one another; a matrix library that waits for its own threads would crawl.
inline const bool kOneThread = (prepare_compute_thread(), true);

/// ‖a − b‖ / ‖b‖, and ‖a‖ where b is zero.
template <typename A, typename B>
double relative_error(const std::vector<A>& a, const std::vector<B>& b) {
  if (a.size() != b.size()) return INFINITY;
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    difference += (x - y) * (x - y);
    size += y * y;
  }
  return std::sqrt(difference) / (size > 0 ? std::sqrt(size) : 1.0);
}

/// Standard normal numbers times `scale`.
inline std::vector<float> random_values(int64_t count, uint64_t seed, float scale = 1.0F) {
  RandomGenerator random(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = random.normal() * scale;
  return values;
}

inline Tensor random_tensor(const Shape& shape, uint64_t seed, DType dtype = DType::kFloat32,
                            float scale = 1.0F) {
  const Tensor made(shape, dtype);
  made.assign(random_values(count_of(shape), seed, scale));
  return made;
}

/// The bits of every element, so that comparing is exact and NaN equals itself.
inline std::vector<uint32_t> bits_of(const Tensor& tensor) {
  std::vector<uint32_t> bits;
  for (const float value : tensor.to_vector()) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

/// The dtypes that this machine computes in.
inline std::vector<DType> compute_dtypes() {
  if (!has_bfloat16_arithmetic()) return {DType::kFloat32};
  return {DType::kFloat32, DType::kBFloat16};
}

/// How far a tensor may lie from its float64 reference.
inline double tolerance(DType dtype) { return dtype == DType::kFloat32 ? 1e-5 : 2e-2; }

}  // namespace attend::testing
