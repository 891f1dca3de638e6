#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "attend/tensor/tensor.h"

namespace attend {

/// The sizes of a preset that kernels see.
struct Size {
  const char* preset;
  int64_t d_model, d_ff, heads, vocabulary;
  int64_t weights;  ///< of the whole model
};
constexpr Size kTiny{"tiny", 128, 256, 4, 10000, 2605056};
constexpr Size kBase{"base", 512, 2048, 8, 32000, 60522496};
constexpr Size kBig{"big", 1024, 4096, 16, 32000, 209125376};

/// Tokens of a lane at the default --lane-tokens.
constexpr int64_t kLaneTokens = 1024;
/// Rows whose logits exist at one time (autograd/cross_entropy.cc).
constexpr int64_t kTileRows = 128;

/// float32 and, where the machine multiplies it, bfloat16.
std::vector<DType> dtypes();
/// Numbers between -1 and 1, the same in every run.
Tensor filled(Shape shape, DType dtype);
/// `count` numbers below `bound`, well spread.
std::vector<int32_t> random_ids(int64_t count, int64_t bound);
/// "norm_forward/base/dropout/bfloat16": what, then everything that tells it from its like.
std::string name_case(const std::string& kernel, const Size& size, const std::string& variant,
                      DType dtype);

void define_products();
void define_attention();
void define_row_kernels();
void define_weight_kernels();

}  // namespace attend
