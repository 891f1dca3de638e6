#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attend/tensor/memory.h"

namespace attend {

/// The upper half of a float32: 8 bits of exponent, 7 of fraction.
struct BFloat16 {
  uint16_t bits;
};
/// Rounds to the nearest, ties to even; NaN stays NaN.
BFloat16 to_bfloat16(float value);
float to_float(BFloat16 value);

/// int8 holds quantised weights alone: kernels compute in the other two.
enum class DType : uint8_t { kFloat32, kBFloat16, kInt8 };
int64_t size_of(DType dtype);
std::string_view name_of(DType dtype);  ///< "float32", "bfloat16", "int8"

using Shape = std::vector<int64_t>;
int64_t count_of(const Shape& shape);       ///< number of elements
std::string to_string(const Shape& shape);  ///< "[3, 128]"

/// Numbers in row-major order. Kernels see it as a matrix: the last dimension is the columns, all
/// others together are the rows. Copying a Tensor copies a handle; the numbers are shared.
class Tensor {
 public:
  Tensor() = default;
  /// Uninitialised numbers from `memory` (aligned to 64 bytes, freed with the last handle).
  Tensor(Shape shape, DType dtype, MemoryPool& memory = MemoryPool::global());
  static Tensor zeros(Shape shape, DType dtype, MemoryPool& memory = MemoryPool::global());
  /// float32 from values, for tests and small tables. Throws Error where the counts differ.
  static Tensor from(const std::vector<float>& values, Shape shape,
                     MemoryPool& memory = MemoryPool::global());

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  /// Elements from one row to the next; more than columns() in a view made by slice_columns.
  int64_t row_stride() const { return row_stride_; }
  int64_t count() const { return rows_ * columns_; }
  int64_t bytes() const { return count() * size_of(dtype_); }
  bool contiguous() const { return row_stride_ == columns_ || rows_ <= 1; }

  /// The numbers. T must match dtype(): float, BFloat16 or int8_t.
  template <typename T>
  T* data() const {
    return reinterpret_cast<T*>(data_);
  }
  std::byte* raw() const { return data_; }

  /// Columns [begin, end) of every row, sharing the numbers.
  Tensor slice_columns(int64_t begin, int64_t end) const;
  /// Rows [begin, end), sharing the numbers.
  Tensor slice_rows(int64_t begin, int64_t end) const;
  /// The same numbers under another shape of equal count. Must be contiguous.
  Tensor reshape(Shape shape) const;

  /// A float32 copy of all elements, whatever the dtype.
  std::vector<float> to_vector() const;
  /// Copies values in, in dtype(), which is not int8. Throws Error where the counts differ.
  void assign(const std::vector<float>& values) const;
  /// Sets every byte to zero.
  void zero() const;

 private:
  void set_shape(Shape shape);

  std::shared_ptr<std::byte> storage_;
  std::byte* data_ = nullptr;
  Shape shape_;
  int64_t rows_ = 0;
  int64_t columns_ = 0;
  int64_t row_stride_ = 0;
  DType dtype_ = DType::kFloat32;
};

}  // namespace attend
