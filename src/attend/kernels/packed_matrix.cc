#include "attend/kernels/packed_matrix.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <mutex>
#include <vector>

#include <omp.h>

#include "attend/base/error.h"
#include "attend/base/profile.h"
#include "attend/kernels/activation.h"
#include "attend/kernels/gemm.h"
#include "attend/kernels/onednn.h"
#include "attend/kernels/product_rows.h"

namespace attend {
namespace {

using dnnl::memory;

/// Rows that are multiplied at once: enough for the full rate, and few enough that what goes in and
/// out stays in the cache.
constexpr int64_t kMostRows = 64;
/// A primitive is made for each of these numbers of rows when it is first wanted; other numbers are
/// rounded up.
constexpr std::array<int64_t, 15> kRowCounts = {1,  2,  4,  6,  8,  12, 16,       20,
                                                24, 28, 32, 40, 48, 56, kMostRows};

std::size_t row_count_index(int64_t rows) {
  return static_cast<std::size_t>(std::lower_bound(kRowCounts.begin(), kRowCounts.end(), rows) -
                                  kRowCounts.begin());
}

struct TileShape {
  int64_t in, out;
  DType dtype;
  bool operator==(const TileShape&) const = default;
};

/// A small number for every shape that was ever packed, the same for all threads.
std::size_t number_of(const TileShape& shape) {
  static std::mutex mutex;
  static std::vector<TileShape> known;
  const std::lock_guard lock(mutex);
  const auto found = std::find(known.begin(), known.end(), shape);
  if (found != known.end()) return static_cast<std::size_t>(found - known.begin());
  known.push_back(shape);
  return known.size() - 1;
}

/// Of the rows that a weight multiplies. VNNI multiplies unsigned by signed bytes: oneDNN's int8 is
/// here to be measured, see measure_packed_rate.
memory::data_type rows_of(DType dtype) {
  return dtype == DType::kInt8 ? memory::data_type::u8 : data_type_of(dtype);
}

memory::data_type sums_of(DType dtype) {
  return dtype == DType::kInt8 ? memory::data_type::s32 : memory::data_type::f32;
}

dnnl::matmul::primitive_desc describe(const TileShape& shape, int64_t rows,
                                      const memory::desc& weight) {
  const memory::desc a({rows, shape.in}, rows_of(shape.dtype), memory::format_tag::ab);
  const memory::desc c({rows, shape.out}, sums_of(shape.dtype), memory::format_tag::ab);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
#if DNNL_VERSION_MAJOR >= 3
  return {cpu_engine(), a, weight, c, attributes};
#else
  return {dnnl::matmul::desc(a, weight, c), attributes, cpu_engine()};
#endif
}

/// One thread's primitive for one shape and number of rows.
struct Execution {
  Execution(const TileShape& shape, int64_t rows, const memory::desc& weight)
      : description(describe(shape, rows, weight)),
        primitive(description),
        a(description.src_desc(), cpu_engine(), DNNL_MEMORY_NONE),
        c(description.dst_desc(), cpu_engine(), DNNL_MEMORY_NONE),
        scratchpad(description.scratchpad_desc(), cpu_engine()) {}

  void run(void* rows, void* sums, const memory& weight) {
    if (a.get_data_handle() != rows) a.set_data_handle(rows);
    if (c.get_data_handle() != sums) c.set_data_handle(sums);
    // The C function: the C++ one makes a map of the arguments at every call.
    const std::array<dnnl_exec_arg_t, 4> arguments{{{DNNL_ARG_SRC, a.get()},
                                                    {DNNL_ARG_WEIGHTS, weight.get()},
                                                    {DNNL_ARG_DST, c.get()},
                                                    {DNNL_ARG_SCRATCHPAD, scratchpad.get()}}};
    dnnl::error::wrap_c_api(
        dnnl_primitive_execute(primitive.get(), cpu_stream().get(),
                               static_cast<int>(arguments.size()), arguments.data()),
        "executing a matrix product");
  }

  dnnl::matmul::primitive_desc description;
  dnnl::matmul primitive;
  memory a, c, scratchpad;
};

/// oneDNN does not survive it where the system has no memory for a kernel's code. So there must be
/// some, with room to spare.
void require_memory_for_code() {
  constexpr int64_t kMostCode = int64_t{4} << 20;
  MemoryPool::global().allocate(kMostCode);
}

Execution& execution_for(std::size_t number, const TileShape& shape, int64_t rows,
                         const memory& weight) {
  using OfShape = std::array<std::unique_ptr<Execution>, kRowCounts.size()>;
  thread_local std::vector<OfShape> made;
  if (made.size() <= number) made.resize(number + 1);
  const std::size_t index = row_count_index(rows);
  std::unique_ptr<Execution>& execution = made[number][index];
  if (!execution) {
    require_memory_for_code();
    execution = std::make_unique<Execution>(shape, kRowCounts[index], weight.get_desc());
  }
  return *execution;
}

/// One thread for the matrix library while this lives, on the calling thread alone: others would
/// cost more to wake than they do.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;
  ~OneThread() { omp_set_num_threads(before_); }

 private:
  int before_;
};

/// Whether oneDNN has kernels for packed weights whose rows do not depend on one another. Without
/// them the weight stays as it is, and gemm() knows the rules.
bool can_pack(DType dtype) {
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto avx512 = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
  return dtype != DType::kFloat32 || (isa & avx512) == avx512;
}

/// The calling thread's memory for the rows that go in and the sums that come out.
struct Scratch {
  std::byte* rows(int64_t bytes) { return reserve(rows_, bytes); }
  std::byte* sums(int64_t bytes) { return reserve(sums_, bytes); }
  std::array<QuantizedRow, kMostRows> quantized{};

  static Scratch& here() {
    thread_local Scratch scratch;
    return scratch;
  }

 private:
  static std::byte* reserve(Tensor& tensor, int64_t bytes) {
    if (!tensor.defined() || tensor.bytes() < bytes) tensor = Tensor::zeros({bytes}, DType::kInt8);
    return tensor.raw();
  }
  Tensor rows_, sums_;
};

}  // namespace

struct PackedMatrix::Tile {
  TileShape shape{};
  std::size_t number = 0;
  memory packed;
  Tensor plain;  ///< where it could not be packed
};

PackedMatrix::PackedMatrix(const Tensor& weight, DType dtype)
    : in_(weight.columns()), out_(weight.rows()), dtype_(dtype) {
  if (dtype == DType::kInt8) {
    panels_ = std::make_unique<Int8Panels>(quantize(weight));
  } else if (dtype == DType::kFloat32) {
    pack(weight);
  } else {
    const Tensor converted({out_, in_}, dtype);
    convert(weight, converted);
    pack(converted);
  }
}

PackedMatrix::PackedMatrix(const QuantizedMatrix& weight)
    : in_(weight.values.columns()),
      out_(weight.values.rows()),
      dtype_(DType::kInt8),
      panels_(std::make_unique<Int8Panels>(weight)) {}

PackedMatrix::~PackedMatrix() = default;

void PackedMatrix::pack(const Tensor& weight) {
  if (in_ < 1 || out_ < 1) fail("a weight of shape {} cannot be packed", to_string(weight.shape()));
  const OneThread one_thread;
  const int64_t count = (out_ + kProductTileColumns - 1) / kProductTileColumns;
  tiles_ = std::make_unique<Tile[]>(static_cast<std::size_t>(count));
  try {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t first = i * kProductTileColumns;
      const int64_t end = std::min(first + kProductTileColumns, out_);
      Tile& tile = tiles_[static_cast<std::size_t>(i)];
      tile.shape = {in_, end - first, dtype_};
      const Tensor rows = weight.slice_rows(first, end);
      if (!can_pack(dtype_)) {
        tile.plain = rows;
        continue;
      }
      tile.number = number_of(tile.shape);
      require_memory_for_code();
      const memory::desc any({in_, end - first}, data_type_of(dtype_), memory::format_tag::any);
      tile.packed = memory(describe(tile.shape, kMostRows, any).weights_desc(), cpu_engine());
      memory from({{in_, end - first}, data_type_of(dtype_), memory::dims{1, rows.row_stride()}},
                  cpu_engine(), rows.raw());
      dnnl::reorder(from, tile.packed).execute(cpu_stream(), from, tile.packed);
    }
    cpu_stream().wait();
  } catch (const dnnl::error& error) {
    fail_product(error);
  }
}

int64_t PackedMatrix::bytes() const { return in_ * out_ * size_of(dtype_); }

/// Multiplies a few rows by every tile of a weight.
class TiledProduct {
 public:
  TiledProduct(const Tensor& x, const PackedMatrix& weight) : x_(x), weight_(weight) {}

  void run(int64_t first_row, const std::function<void(const ProductTile&)>& use) const {
    if (weight_.panels_) return run_panels(first_row, use);
    Scratch& scratch = Scratch::here();
    ProductTile part{.first_row = first_row, .rows = std::min(kMostRows, x_.rows() - first_row)};
    const int64_t padded = kRowCounts[row_count_index(part.rows)];
    const int64_t row_bytes = weight_.in_ * size_of(weight_.dtype_);
    std::byte* rows = scratch.rows(padded * row_bytes);
    pack_rows(x_.slice_rows(first_row, first_row + part.rows), weight_.dtype_, rows);
    // Zeros, so that what was left there cannot be a number that is slow to multiply.
    std::memset(rows + part.rows * row_bytes, 0,
                static_cast<std::size_t>((padded - part.rows) * row_bytes));
    for (int64_t column = 0; column < weight_.out_; column += kProductTileColumns) {
      const PackedMatrix::Tile& tile =
          weight_.tiles_[static_cast<std::size_t>(column / kProductTileColumns)];
      part.first_column = column;
      part.columns = tile.shape.out;
      if (tile.plain.defined()) {
        use_plain(tile, part, use);
        continue;
      }
      std::byte* sums = scratch.sums(padded * part.columns * int64_t{sizeof(float)});
      multiply_rows(tile, part.rows, padded, rows, sums);
      part.sums = reinterpret_cast<const float*>(sums);
      use(part);
    }
  }

  /// Rows of int8 weights, whole: y = x · Wᵀ + bias.
  void run_whole(int64_t first_row, const Tensor& bias, const Tensor& y) const {
    const int64_t rows = std::min(kMostRows, x_.rows() - first_row);
    const uint8_t* bytes = quantize_some(first_row, rows);
    const ProfileScope scope = profile_product(rows, weight_.out_);
    weight_.panels_->multiply(bytes, Scratch::here().quantized.data(), bias,
                              y.slice_rows(first_row, first_row + rows));
  }

 private:
  void run_panels(int64_t first_row, const std::function<void(const ProductTile&)>& use) const {
    Scratch& scratch = Scratch::here();
    const Int8Panels& panels = *weight_.panels_;
    ProductTile part{.first_row = first_row, .rows = std::min(kMostRows, x_.rows() - first_row)};
    const uint8_t* bytes = quantize_some(first_row, part.rows);
    part.quantized_rows = scratch.quantized.data();
    for (; part.first_column < weight_.out_; part.first_column += kProductTileColumns) {
      part.columns = std::min(kProductTileColumns, weight_.out_ - part.first_column);
      auto* sums = reinterpret_cast<int32_t*>(
          scratch.sums(part.rows * part.columns * int64_t{sizeof(int32_t)}));
      {
        const ProfileScope scope = profile_product(part.rows, part.columns);
        panels.multiply(bytes, part.rows, part.first_column, part.columns, sums);
      }
      part.int8_sums = sums;
      part.column_scales = panels.column_scales() + part.first_column;
      part.column_sums = panels.column_sums() + part.first_column;
      use(part);
    }
  }

  /// In the calling thread's memory.
  const uint8_t* quantize_some(int64_t first_row, int64_t rows) const {
    Scratch& scratch = Scratch::here();
    const int64_t stride = weight_.panels_->row_bytes();
    auto* bytes = reinterpret_cast<uint8_t*>(scratch.rows(rows * stride));
    quantize_rows(x_.slice_rows(first_row, first_row + rows), bytes, stride,
                  scratch.quantized.data());
    return bytes;
  }

  ProfileScope profile_product(int64_t rows, int64_t columns) const {
    const int64_t in = weight_.in_, moved = (rows + columns) * in * size_of(weight_.dtype_);
    return ProfileScope("gemm", 2.0 * static_cast<double>(rows * in * columns),
                        static_cast<double>(moved + 4 * rows * columns));
  }

  void multiply_rows(const PackedMatrix::Tile& tile, int64_t rows, int64_t padded, std::byte* a,
                     std::byte* sums) const {
    const ProfileScope scope = profile_product(rows, tile.shape.out);
    try {
      execution_for(tile.number, tile.shape, padded, tile.packed).run(a, sums, tile.packed);
    } catch (const dnnl::error& error) {
      fail_product(error);
    }
  }

  void use_plain(const PackedMatrix::Tile& tile, ProductTile& part,
                 const std::function<void(const ProductTile&)>& use) const {
    const Tensor sums({part.rows, part.columns}, DType::kFloat32);
    Tensor rows = x_.slice_rows(part.first_row, part.first_row + part.rows);
    if (rows.dtype() != DType::kFloat32) {
      const Tensor converted({part.rows, weight_.in_}, DType::kFloat32);
      convert(rows, converted);
      rows = converted;
    }
    gemm(rows, Transpose::kNo, tile.plain, Transpose::kYes, sums);
    part.sums = sums.data<float>();
    use(part);
  }

  const Tensor& x_;
  const PackedMatrix& weight_;
};

namespace {

void check_product(const Tensor& x, const PackedMatrix& weight) {
  if (x.columns() != weight.in() || x.dtype() == DType::kInt8) {
    fail("product of {} {} and a weight of shape [{}, {}] does not fit", name_of(x.dtype()),
         to_string(x.shape()), weight.out(), weight.in());
  }
}

}  // namespace

void multiply_tiles(const Tensor& x, const PackedMatrix& weight,
                    const std::function<void(const ProductTile&)>& use) {
  check_product(x, weight);
  const TiledProduct product(x, weight);
  for (int64_t row = 0; row < x.rows(); row += kMostRows) product.run(row, use);
}

double measure_packed_rate(DType dtype, double seconds) {
  constexpr int64_t kDepth = 512;
  const TileShape shape{kDepth, kDepth, dtype};
  const memory::desc any({kDepth, kDepth}, data_type_of(dtype), memory::format_tag::any);
  const memory weight(describe(shape, kMostRows, any).weights_desc(), cpu_engine());
  std::memset(weight.get_data_handle(), 0, weight.get_desc().get_size());
  Execution execution(shape, kMostRows, weight.get_desc());
  const Tensor a = Tensor::zeros({kMostRows, kDepth}, dtype);
  const Tensor c({kMostRows, kDepth}, DType::kFloat32);
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point from) {
    return std::chrono::duration<double>(Clock::now() - from).count();
  };
  double best = 1e30;
  for (const auto start = Clock::now(); since(start) < seconds;) {
    const auto before = Clock::now();
    execution.run(a.raw(), c.raw(), weight);
    best = std::min(best, since(before));
  }
  return 2.0 * kMostRows * kDepth * kDepth / best;
}

void multiply(const Tensor& x, const PackedMatrix& weight, const Tensor& bias, const Tensor& y) {
  if (y.rows() != x.rows() || y.columns() != weight.out() ||
      (bias.defined() && bias.count() != weight.out())) {
    fail("product of {} rows and a weight of shape [{}, {}] does not fit into {}", x.rows(),
         weight.out(), weight.in(), to_string(y.shape()));
  }
  if (weight.dtype() != DType::kInt8) {
    return multiply_tiles(x, weight, [&](const ProductTile& tile) { finish_rows(tile, bias, y); });
  }
  check_product(x, weight);
  const TiledProduct product(x, weight);
  for (int64_t row = 0; row < x.rows(); row += kMostRows) product.run_whole(row, bias, y);
}

}  // namespace attend
