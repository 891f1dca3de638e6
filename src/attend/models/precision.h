#pragma once

#include <cstdint>
#include <string_view>

namespace attend {

enum class DType : uint8_t;  // tensor/tensor.h

/// What matrix products multiply. Weights, sums, norms, softmax and loss are float32 in any case.
/// kAuto is bfloat16 where that is faster on this CPU, else float32.
enum class Precision { kAuto, kFloat32, kBFloat16 };

/// "auto", "float32", "bfloat16". The parser throws UsageError listing these.
std::string_view name_of(Precision value);
Precision parse_precision(std::string_view name);

/// What the products of a model that only runs multiply by. int8: weights with a scale for every
/// output channel, activations with one for every row, found as they come. kAuto is int8 for a
/// model whose file is int8; else bfloat16 where that is faster on this CPU, else float32.
enum class InferencePrecision { kAuto, kFloat32, kBFloat16, kInt8 };
std::string_view name_of(InferencePrecision value);
/// Throws UsageError listing the names.
InferencePrecision parse_inference_precision(std::string_view name);

/// As choose_precision, of weights; `stored` is what the model's file holds.
DType choose_precision(InferencePrecision asked, DType stored);

/// The dtype to compute in. A CPU that cannot do what was asked for gets float32, with a warning
/// that says so (contract 24).
DType choose_precision(Precision asked);

}  // namespace attend
