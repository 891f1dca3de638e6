#include "attend/models/precision.h"

#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/kernels/gemm.h"
#include "attend/models/hostile_text.h"

namespace attend {

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

Precision parse_precision(std::string_view name) {
  for (const Precision each : {Precision::kAuto, Precision::kFloat32, Precision::kBFloat16}) {
    if (name_of(each) == name) return each;
  }
  fail_usage("found {}, expected one of auto, float32, bfloat16", shown(name));
}

DType choose_precision(Precision asked) {
  if (asked == Precision::kFloat32) return DType::kFloat32;
  if (has_bfloat16_arithmetic()) return DType::kBFloat16;
  if (asked == Precision::kBFloat16) {
    logger().warn("this CPU does not multiply bfloat16; computing in float32");
  }
  return DType::kFloat32;
}

}  // namespace attend
