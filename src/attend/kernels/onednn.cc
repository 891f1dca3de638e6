#include "attend/kernels/onednn.h"

#include "attend/base/error.h"

namespace attend {

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& cpu_stream() {
  thread_local dnnl::stream stream(cpu_engine());
  return stream;
}

dnnl::memory::data_type data_type_of(DType dtype) {
  if (dtype == DType::kInt8) return dnnl::memory::data_type::s8;
  return dtype == DType::kFloat32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16;
}

void fail_product(const dnnl::error& error) {
  fail("the matrix library failed: {}; most often there is too little memory", error.what());
}

}  // namespace attend
