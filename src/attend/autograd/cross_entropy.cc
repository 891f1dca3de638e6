#include <algorithm>

#include "attend/autograd/ops.h"
#include "attend/autograd/traffic.h"
#include "attend/base/profile.h"
#include "attend/kernels/gemm.h"

namespace attend {
namespace {

/// Rows whose logits exist in float32 at one time: few enough for the cache, enough for the
/// product.
constexpr int64_t kTileRows = 128;
/// The gradient of the logits is kept for as many rows as fit here, so that the product for the
/// table's gradient is long and the table's turn is held once.
constexpr int64_t kGradientBytes = int64_t{128} << 20;

int64_t rows_of_block(int64_t classes, DType dtype) {
  const int64_t rows = kGradientBytes / std::max<int64_t>(1, classes * size_of(dtype));
  return std::max(kTileRows, rows / kTileRows * kTileRows);
}

}  // namespace

LossSums project_cross_entropy(Context& context, const Variable& hidden, Parameter& table,
                               std::span<const int32_t> targets, float label_smoothing,
                               float gradient_scale) {
  const ProfileScope scope("cross-entropy");
  const Tensor& x = hidden.value();
  const int64_t classes = table.shape[0], block_rows = rows_of_block(classes, context.compute);
  Tape* tape = context.tape;
  const Tensor d_x = tape != nullptr ? hidden.gradient_sink(*context.memory).tensor : Tensor();
  for (int64_t first = 0; tape != nullptr && first < x.rows(); first += block_rows) {
    tape->announce(table);  // all blocks at once: the turn is kept until the last
  }
  LossSums sums;
  for (int64_t first = 0; first < x.rows(); first += block_rows) {
    const int64_t last = std::min(x.rows(), first + block_rows);
    const Tensor d_logits =
        tape != nullptr ? context.tensor({last - first, classes}, context.compute) : Tensor();
    for (int64_t row = first; row < last; row += kTileRows) {
      const int64_t end = std::min(last, row + kTileRows);
      const Tensor logits = context.tensor({end - row, classes}, DType::kFloat32);
      gemm(x.slice_rows(row, end), Transpose::kNo, table.compute, Transpose::kYes, logits);
      const Tensor d_tile =
          tape != nullptr ? d_logits.slice_rows(row - first, end - first) : Tensor();
      const auto tile_targets =
          targets.subspan(static_cast<std::size_t>(row), static_cast<std::size_t>(end - row));
      {
        const ProfileScope softmax("softmax and loss");
        sums += cross_entropy(logits, tile_targets, label_smoothing, gradient_scale, d_tile);
        profile_traffic(logits, d_tile);
      }
      if (tape != nullptr) {
        gemm(d_tile, Transpose::kNo, table.compute, Transpose::kNo, d_x.slice_rows(row, end));
      }
    }
    if (tape == nullptr) continue;
    tape->add_gradient(table, [&] {
      gemm(d_logits, Transpose::kYes, x.slice_rows(first, last), Transpose::kNo, table.gradient,
           {.accumulate = true});
    });
  }
  return sums;
}

}  // namespace attend
