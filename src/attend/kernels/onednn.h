// What the files that call oneDNN share. Nothing above kernels/ may include this.
#pragma once

#include <dnnl.hpp>

#include "attend/tensor/tensor.h"

namespace attend {

const dnnl::engine& cpu_engine();
/// The calling thread's.
dnnl::stream& cpu_stream();
dnnl::memory::data_type data_type_of(DType dtype);

/// Throws Error for what oneDNN reported while `doing`.
[[noreturn]] void fail_product(const dnnl::error& error);

}  // namespace attend
