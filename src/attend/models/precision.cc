#include "attend/models/precision.h"

#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/kernels/gemm.h"
#include "attend/models/hostile_text.h"

namespace attend {

namespace {

/// The value of that name among `all`.
template <typename Value, std::size_t kCount>
Value parse(std::string_view name, const Value (&all)[kCount]) {
  std::string names;
  for (const Value each : all) {
    if (name_of(each) == name) return each;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(each));
  }
  fail_usage("found {}, expected one of {}", shown(name), names);
}

DType without(const char* what) {
  logger().warn("this CPU does not multiply {}; computing in float32", what);
  return DType::kFloat32;
}

}  // namespace

std::string_view name_of(Precision value) {
  switch (value) {
    case Precision::kFloat32:
      return "float32";
    case Precision::kBFloat16:
      return "bfloat16";
    case Precision::kAuto:
      break;
  }
  return "auto";
}

std::string_view name_of(InferencePrecision value) {
  switch (value) {
    case InferencePrecision::kFloat32:
      return "float32";
    case InferencePrecision::kBFloat16:
      return "bfloat16";
    case InferencePrecision::kInt8:
      return "int8";
    case InferencePrecision::kAuto:
      break;
  }
  return "auto";
}

Precision parse_precision(std::string_view name) {
  using enum Precision;
  return parse(name, {kAuto, kFloat32, kBFloat16});
}

InferencePrecision parse_inference_precision(std::string_view name) {
  using enum InferencePrecision;
  return parse(name, {kAuto, kFloat32, kBFloat16, kInt8});
}

DType choose_precision(Precision asked) {
  if (asked == Precision::kFloat32) return DType::kFloat32;
  if (asked == Precision::kAuto) return prefers_bfloat16() ? DType::kBFloat16 : DType::kFloat32;
  return has_bfloat16_arithmetic() ? DType::kBFloat16 : without("bfloat16");
}

DType choose_precision(InferencePrecision asked, DType stored) {
  switch (asked) {
    case InferencePrecision::kFloat32:
      return choose_precision(Precision::kFloat32);
    case InferencePrecision::kBFloat16:
      return choose_precision(Precision::kBFloat16);
    case InferencePrecision::kInt8:
      return has_int8_arithmetic() ? DType::kInt8 : without("int8");
    case InferencePrecision::kAuto:
      break;
  }
  if (stored == DType::kInt8 && has_int8_arithmetic()) return DType::kInt8;
  return choose_precision(Precision::kAuto);
}

}  // namespace attend
