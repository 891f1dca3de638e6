#include "attend/kernels/gemm.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "attend/base/error.h"
#include "attend/base/profile.h"
#include "attend/kernels/onednn.h"

namespace attend {
namespace {

using dnnl::memory;

/// All that a primitive is made for; the sizes come when it runs. With every size a run-time one,
/// oneDNN's kernels lose nothing measurable here, and ragged batches need no new primitives.
struct Variant {
  bool transpose_a, transpose_b, bias, accumulate;
  DType in, out;

  std::size_t index() const {
    return (transpose_a ? 1U : 0U) | (transpose_b ? 2U : 0U) | (bias ? 4U : 0U) |
           (accumulate ? 8U : 0U) | (in == DType::kBFloat16 ? 16U : 0U) |
           (out == DType::kBFloat16 ? 32U : 0U);
  }
};

memory::desc run_time_matrix(DType dtype, bool transposed) {
  constexpr auto kAny = DNNL_RUNTIME_DIM_VAL;
  return {{kAny, kAny},
          data_type_of(dtype),
          transposed ? memory::dims{1, kAny} : memory::dims{kAny, 1}};
}

dnnl::matmul make_primitive(const Variant& variant) {
  const memory::desc a = run_time_matrix(variant.in, variant.transpose_a);
  const memory::desc b = run_time_matrix(variant.in, variant.transpose_b);
  const memory::desc c = run_time_matrix(variant.out, false);
  const memory::desc bias({1, DNNL_RUNTIME_DIM_VAL}, memory::data_type::f32,
                          memory::dims{DNNL_RUNTIME_DIM_VAL, 1});
  dnnl::primitive_attr attributes;
  if (variant.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0F);
    attributes.set_post_ops(sum);
  }
#if DNNL_VERSION_MAJOR >= 3
  return dnnl::matmul(variant.bias
                          ? dnnl::matmul::primitive_desc(cpu_engine(), a, b, bias, c, attributes)
                          : dnnl::matmul::primitive_desc(cpu_engine(), a, b, c, attributes));
#else
  const dnnl::matmul::desc description =
      variant.bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
  return dnnl::matmul(dnnl::matmul::primitive_desc(description, attributes, cpu_engine()));
#endif
}

const dnnl::matmul& primitive_for(const Variant& variant) {
  thread_local std::array<std::optional<dnnl::matmul>, 64> made;
  auto& slot = made[variant.index()];
  if (!slot) slot = make_primitive(variant);
  return *slot;
}

memory wrap(const Tensor& tensor, bool transposed) {
  const memory::dims dims = transposed ? memory::dims{tensor.columns(), tensor.rows()}
                                       : memory::dims{tensor.rows(), tensor.columns()};
  const memory::dims strides =
      transposed ? memory::dims{1, tensor.row_stride()} : memory::dims{tensor.row_stride(), 1};
  return {memory::desc(dims, data_type_of(tensor.dtype()), strides), cpu_engine(), tensor.raw()};
}

void execute(const Tensor& a, Transpose transpose_a, const Tensor& b, Transpose transpose_b,
             const Tensor& c, const GemmOptions& options) {
  const bool ta = transpose_a == Transpose::kYes, tb = transpose_b == Transpose::kYes;
  const Variant variant{ta, tb, options.bias != nullptr, options.accumulate, a.dtype(), c.dtype()};
  std::unordered_map<int, memory> arguments{
      {DNNL_ARG_SRC, wrap(a, ta)}, {DNNL_ARG_WEIGHTS, wrap(b, tb)}, {DNNL_ARG_DST, wrap(c, false)}};
  if (options.bias != nullptr) {
    arguments.emplace(DNNL_ARG_BIAS, wrap(options.bias->reshape({1, c.columns()}), false));
  }
  try {
    primitive_for(variant).execute(cpu_stream(), arguments);
  } catch (const dnnl::error& error) {
    fail_product(error);
  }
}

/// With which numbers of rows oneDNN rounds every row of a · bᵀ alike (measured;
/// tests/kernels/gemm_test.cc). One row goes to a matrix-vector kernel. In float32, rows that do
/// not fill a tile of the kernel go to others: with AVX-512 where there are fewer than 16, with
/// AVX2 where they are not whole sixes; and there more than 48 rows may be cut into other parts.
/// With AVX-512 sums deeper than 768 are cut into parts that depend on the number of rows.
struct RowRule {
  int64_t least = 2;
  int64_t multiple = 1;
  int64_t most = std::numeric_limits<int64_t>::max();
  int64_t deepest = std::numeric_limits<int64_t>::max();  ///< of a sum
};

const RowRule& row_rule(DType dtype) {
  static const RowRule narrow{};
  static const RowRule wide = [] {
    const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
    const auto avx512 = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
    return (isa & avx512) == avx512 ? RowRule{.least = 16, .deepest = 768}
                                    : RowRule{.least = 6, .multiple = 6, .most = 48};
  }();
  return dtype == DType::kFloat32 ? wide : narrow;
}

/// As execute, with rows of zeros below those of a, whose results are thrown away.
void execute_padded(const Tensor& a, const Tensor& b, const Tensor& c, const GemmOptions& options,
                    int64_t rows) {
  const Tensor padded_a = Tensor::zeros({rows, a.columns()}, a.dtype());
  const Tensor padded_c = Tensor::zeros({rows, c.columns()}, c.dtype());
  const auto copy = [count = a.rows()](const Tensor& from, const Tensor& to) {
    const int64_t size = size_of(from.dtype());
    for (int64_t row = 0; row < count; ++row) {
      std::copy_n(from.raw() + row * from.row_stride() * size, from.columns() * size,
                  to.raw() + row * to.row_stride() * size);
    }
  };
  copy(a, padded_a);
  if (options.accumulate) copy(c, padded_c);
  execute(padded_a, Transpose::kNo, b, Transpose::kYes, padded_c, options);
  copy(padded_c, c);
}

/// c = a · bᵀ for sums no deeper than the rule allows.
void execute_shallow(const Tensor& a, const Tensor& b, const Tensor& c,
                     const GemmOptions& options) {
  const RowRule& rule = row_rule(a.dtype());
  for (int64_t first = 0; first < a.rows();) {
    const int64_t rows = std::min(a.rows() - first, rule.most);
    const int64_t whole = rows >= rule.least ? rows / rule.multiple * rule.multiple : 0;
    const int64_t taken = whole > 0 ? whole : rows;
    const Tensor part_a = a.slice_rows(first, first + taken);
    const Tensor part_c = c.slice_rows(first, first + taken);
    if (whole > 0) {
      execute(part_a, Transpose::kNo, b, Transpose::kYes, part_c, options);
    } else {
      execute_padded(part_a, b, part_c, options, rule.least);
    }
    first += taken;
  }
}

/// c = a · bᵀ; a row does not depend on how many there are.
void execute_rows(const Tensor& a, const Tensor& b, const Tensor& c, const GemmOptions& options) {
  const int64_t depth = a.columns();
  const int64_t deepest = std::min(depth, row_rule(a.dtype()).deepest);
  GemmOptions part = options;
  for (int64_t begin = 0; begin < depth; begin += deepest) {
    const int64_t end = std::min(begin + deepest, depth);
    execute_shallow(a.slice_columns(begin, end), b.slice_columns(begin, end), c, part);
    part = {.bias = nullptr, .accumulate = true};
  }
}

void check(const Tensor& a, bool ta, const Tensor& b, bool tb, const Tensor& c) {
  const int64_t m = ta ? a.columns() : a.rows(), k = ta ? a.rows() : a.columns();
  const int64_t k2 = tb ? b.columns() : b.rows(), n = tb ? b.rows() : b.columns();
  const bool dtypes_fit =
      a.dtype() == b.dtype() && (c.dtype() == a.dtype() || c.dtype() == DType::kFloat32);
  if (k != k2 || m != c.rows() || n != c.columns() || !dtypes_fit) {
    fail("matrix product of {} {}{} and {} {}{} into {} {} does not fit", name_of(a.dtype()),
         to_string(a.shape()), ta ? " transposed" : "", name_of(b.dtype()), to_string(b.shape()),
         tb ? " transposed" : "", name_of(c.dtype()), to_string(c.shape()));
  }
}

}  // namespace

void gemm(const Tensor& a, Transpose transpose_a, const Tensor& b, Transpose transpose_b,
          const Tensor& c, const GemmOptions& options) {
  check(a, transpose_a == Transpose::kYes, b, transpose_b == Transpose::kYes, c);
  if (c.count() == 0) return;
  if (a.count() == 0) {  // a sum over nothing: as over one product of zeros, with any bias
    const Tensor zero_a = Tensor::zeros({c.rows(), 1}, a.dtype());
    const Tensor zero_b = Tensor::zeros({1, c.columns()}, b.dtype());
    gemm(zero_a, Transpose::kNo, zero_b, Transpose::kNo, c, options);
    return;
  }
  const int64_t k = transpose_a == Transpose::kYes ? a.rows() : a.columns();
  const double flops = 2.0 * static_cast<double>(k) * static_cast<double>(c.rows()) *
                       static_cast<double>(c.columns());
  const ProfileScope scope(
      "gemm", flops,
      static_cast<double>(a.bytes() + b.bytes() + c.bytes() * (options.accumulate ? 2 : 1)));
  if (transpose_a == Transpose::kNo && transpose_b == Transpose::kYes) {
    execute_rows(a, b, c, options);
  } else {
    execute(a, transpose_a, b, transpose_b, c, options);
  }
}

bool has_bfloat16_arithmetic() {
  static const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  return isa == dnnl::cpu_isa::avx512_core_bf16 || isa == dnnl::cpu_isa::avx512_core_amx;
}

bool prefers_bfloat16() {
#if defined(__x86_64__)
  // A Cooper Lake is made for bfloat16 and has no AMX yet.
  static const bool slow = dnnl::get_effective_cpu_isa() != dnnl::cpu_isa::avx512_core_amx &&
                           __builtin_cpu_is("intel") != 0 && __builtin_cpu_is("cooperlake") == 0;
  return has_bfloat16_arithmetic() && !slow;
#else
  return has_bfloat16_arithmetic();
#endif
}

double measure_gemm_rate(DType dtype, double seconds) {
  const Tensor a = Tensor::zeros({1024, 512}, dtype), b = Tensor::zeros({512, 512}, dtype);
  const Tensor c({1024, 512}, DType::kFloat32);
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  double best = 1e30;
  const auto since = [](Clock::time_point from) {
    return std::chrono::duration<double>(Clock::now() - from).count();
  };
  execute(a, Transpose::kNo, b, Transpose::kYes, c, {});
  do {
    const auto before = Clock::now();
    execute(a, Transpose::kNo, b, Transpose::kYes, c, {});
    best = std::min(best, since(before));
  } while (since(start) < seconds);
  return 2.0 * 1024 * 512 * 512 / best;
}

bool has_int8_arithmetic() {
  static const bool has = [] {
    const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
    const auto vnni = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_vnni);
    return (isa & vnni) == vnni;
  }();
  return has;
}

std::string name_gemm_library() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
}

}  // namespace attend
