#include "attend/tensor/tensor.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "attend/base/error.h"

namespace attend {

BFloat16 to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return {static_cast<uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
}

float to_float(BFloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

int64_t size_of(DType dtype) {
  if (dtype == DType::kInt8) return 1;
  return dtype == DType::kFloat32 ? 4 : 2;
}

std::string_view name_of(DType dtype) {
  if (dtype == DType::kInt8) return "int8";
  return dtype == DType::kFloat32 ? "float32" : "bfloat16";
}

int64_t count_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

Tensor::Tensor(Shape shape, DType dtype, MemoryPool& memory) : dtype_(dtype) {
  set_shape(std::move(shape));
  storage_ = memory.allocate(bytes());
  data_ = storage_.get();
}

Tensor Tensor::zeros(Shape shape, DType dtype, MemoryPool& memory) {
  Tensor made(std::move(shape), dtype, memory);
  made.zero();
  return made;
}

Tensor Tensor::from(const std::vector<float>& values, Shape shape, MemoryPool& memory) {
  Tensor made(std::move(shape), DType::kFloat32, memory);
  made.assign(values);
  return made;
}

void Tensor::set_shape(Shape shape) {
  shape_ = std::move(shape);
  columns_ = shape_.empty() ? 1 : shape_.back();
  rows_ = shape_.empty()
              ? 1
              : std::accumulate(shape_.begin(), shape_.end() - 1, int64_t{1}, std::multiplies<>());
  row_stride_ = columns_;
}

Tensor Tensor::slice_columns(int64_t begin, int64_t end) const {
  Tensor view = *this;
  view.shape_.back() = end - begin;
  view.columns_ = end - begin;
  view.data_ += begin * size_of(dtype_);
  return view;
}

Tensor Tensor::slice_rows(int64_t begin, int64_t end) const {
  Tensor view = *this;
  view.shape_ = {end - begin, columns_};
  view.rows_ = end - begin;
  view.data_ += begin * row_stride_ * size_of(dtype_);
  return view;
}

Tensor Tensor::reshape(Shape shape) const {
  if (count_of(shape) != count() || !contiguous()) {
    fail("cannot view a tensor of shape {} as {}", to_string(shape_), to_string(shape));
  }
  Tensor view = *this;
  view.set_shape(std::move(shape));
  return view;
}

std::vector<float> Tensor::to_vector() const {
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(count()));
  for (int64_t row = 0; row < rows_; ++row) {
    for (int64_t column = 0; column < columns_; ++column) {
      const int64_t at = row * row_stride_ + column;
      if (dtype_ == DType::kInt8) {
        values.push_back(static_cast<float>(data<int8_t>()[at]));
      } else {
        values.push_back(dtype_ == DType::kFloat32 ? data<float>()[at]
                                                   : to_float(data<BFloat16>()[at]));
      }
    }
  }
  return values;
}

void Tensor::assign(const std::vector<float>& values) const {
  if (static_cast<int64_t>(values.size()) != count()) {
    fail("{} values given for a tensor of shape {}", values.size(), to_string(shape_));
  }
  std::size_t next = 0;
  for (int64_t row = 0; row < rows_; ++row) {
    for (int64_t column = 0; column < columns_; ++column) {
      const int64_t at = row * row_stride_ + column;
      if (dtype_ == DType::kFloat32) {
        data<float>()[at] = values[next++];
      } else {
        data<BFloat16>()[at] = to_bfloat16(values[next++]);
      }
    }
  }
}

void Tensor::zero() const {
  const auto row_bytes = static_cast<std::size_t>(columns_ * size_of(dtype_));
  for (int64_t row = 0; row < rows_; ++row) {
    std::memset(data_ + row * row_stride_ * size_of(dtype_), 0, row_bytes);
  }
}

}  // namespace attend
