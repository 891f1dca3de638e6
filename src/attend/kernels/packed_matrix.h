#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "attend/kernels/int8_panels.h"
#include "attend/tensor/tensor.h"

namespace attend {

/// A layer's weight [out, in], laid out for x · Wᵀ once, when a model is loaded, and never changed:
/// in float32, bfloat16 or int8 with a scale for every output channel. Any number of threads may
/// multiply by it at once. int8 is multiplied by Int8Panels, the others by oneDNN.
///
/// Products of a few rows run at the speed of large ones, and a row's bits depend on no other row
/// and not on how many there are (contract 6).
class PackedMatrix {
 public:
  /// weight: float32 [out, in]. int8 quantises it.
  PackedMatrix(const Tensor& weight, DType dtype);
  explicit PackedMatrix(const QuantizedMatrix& weight);
  PackedMatrix(const PackedMatrix&) = delete;
  PackedMatrix& operator=(const PackedMatrix&) = delete;
  ~PackedMatrix();

  int64_t in() const { return in_; }
  int64_t out() const { return out_; }
  DType dtype() const { return dtype_; }
  int64_t bytes() const;

 private:
  friend class TiledProduct;
  struct Tile;
  void pack(const Tensor& weight);

  int64_t in_, out_;
  DType dtype_;
  std::unique_ptr<Int8Panels> panels_;  ///< of int8
  std::unique_ptr<Tile[]> tiles_;       ///< of the others
};

/// A part of x · Wᵀ: so many rows by so many columns, from first_row and first_column on.
struct ProductTile {
  int64_t first_row = 0, rows = 0;
  int64_t first_column = 0, columns = 0;
  const float* sums = nullptr;  ///< [rows, columns]; null where the weight is int8
  /// [rows, columns]; a number is (sum - row's zero · column's sum) · row scale · column scale.
  const int32_t* int8_sums = nullptr;
  const QuantizedRow* quantized_rows = nullptr;  ///< [rows]
  const float* column_scales = nullptr;          ///< [columns]
  const float* column_sums = nullptr;            ///< [columns], of the weight's numbers
};

/// Columns of a tile at most. Tiles are cut at multiples of it, whatever the rows.
constexpr int64_t kProductTileColumns = 1024;

/// Multiplies x, float32 or bfloat16 [rows, in], by the weight, tile by tile, on the calling
/// thread. int8 quantises x row by row. A tile's numbers are good until `use` returns. The tiles of
/// a row come in the order of their columns.
void multiply_tiles(const Tensor& x, const PackedMatrix& weight,
                    const std::function<void(const ProductTile&)>& use);

/// y = x · Wᵀ + bias: y [rows, out] float32 or bfloat16, bias float32 [out] or undefined. Throws
/// Error where shapes do not fit.
void multiply(const Tensor& x, const PackedMatrix& weight, const Tensor& bias, const Tensor& y);

/// The matrix library's rate in this dtype on one core, in FLOP/s, for 64 rows and a packed weight
/// of [512, 512]: the best of `seconds` of trying.
double measure_packed_rate(DType dtype, double seconds = 0.5);

}  // namespace attend
