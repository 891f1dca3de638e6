#include "bench/cases.h"

#include <utility>

#include "attend/base/random.h"
#include "attend/kernels/gemm.h"

namespace attend {

std::vector<DType> dtypes() {
  std::vector<DType> found{DType::kFloat32};
  if (has_bfloat16_arithmetic()) found.push_back(DType::kBFloat16);
  return found;
}

Tensor filled(Shape shape, DType dtype) {
  std::vector<float> values(static_cast<std::size_t>(count_of(shape)));
  uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525U + 1013904223U;  // Knuth's constants; good enough to fill with
    value = static_cast<float>(state >> 8) * 0x1p-23F - 1.0F;
  }
  const Tensor tensor(std::move(shape), dtype);
  tensor.assign(values);
  return tensor;
}

std::vector<int32_t> random_ids(int64_t count, int64_t bound) {
  RandomGenerator random(1);
  std::vector<int32_t> ids(static_cast<std::size_t>(count));
  for (int32_t& id : ids) {
    id = static_cast<int32_t>(random.uniform_index(static_cast<uint64_t>(bound)));
  }
  return ids;
}

std::string name_case(const std::string& kernel, const Size& size, const std::string& variant,
                      DType dtype) {
  std::string name = kernel + "/" + size.preset + "/";
  if (!variant.empty()) name += variant + "/";
  return name.append(name_of(dtype));
}

}  // namespace attend
