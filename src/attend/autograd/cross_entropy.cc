#include <algorithm>
#include <array>

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

struct TokenLoss {
  std::span<const int32_t> targets;
  float label_smoothing, gradient_scale, r_drop;
};

/// The op on some rows of every copy of the tokens: there are two with R-Drop, else one.
class Projection {
 public:
  Projection(Context& context, const Tensor& hidden, const Tensor& d_hidden, Parameter& table,
             const TokenLoss& loss)
      : context_(context), hidden_(hidden), d_hidden_(d_hidden), table_(table), loss_(loss) {}

  int64_t rows() const { return std::ssize(loss_.targets); }
  int64_t copies() const { return loss_.r_drop > 0 ? 2 : 1; }

  /// Loss of rows [first, last); the gradients of their hidden states, and of the table in its
  /// turn.
  LossSums block(int64_t first, int64_t last) {
    Copies d_logits;
    if (context_.tape != nullptr) d_logits = make_logits(last - first, context_.compute);
    LossSums sums;
    const int64_t tile_rows = kTileRows / copies();
    for (int64_t row = first; row < last; row += tile_rows) {
      const int64_t end = std::min(last, row + tile_rows);
      Copies d_tile;
      for_copies([&](std::size_t copy) {
        if (context_.tape == nullptr) return;
        d_tile[copy] = d_logits[copy].slice_rows(row - first, end - first);
      });
      sums += tile(row, end, d_tile);
    }
    if (context_.tape == nullptr) return sums;
    context_.tape->add_gradient(table_, [&] {
      for_copies([&](std::size_t copy) {
        gemm(d_logits[copy], Transpose::kYes, rows_of(hidden_, copy, first, last), Transpose::kNo,
             table_.gradient, {.accumulate = true});
      });
    });
    return sums;
  }

 private:
  using Copies = std::array<Tensor, 2>;

  template <typename Work>
  void for_copies(const Work& work) const {
    for (std::size_t copy = 0; static_cast<int64_t>(copy) < copies(); ++copy) work(copy);
  }

  Tensor rows_of(const Tensor& all, std::size_t copy, int64_t first, int64_t last) const {
    const int64_t before = static_cast<int64_t>(copy) * rows();
    return all.slice_rows(before + first, before + last);
  }

  Copies make_logits(int64_t count, DType dtype) const {
    Copies made;
    for_copies([&](std::size_t copy) {
      made[copy] = context_.tensor({count, table_.shape[0]}, dtype);
    });
    return made;
  }

  LossSums tile(int64_t first, int64_t last, const Copies& d_logits) const {
    const Copies logits = make_logits(last - first, DType::kFloat32);
    for_copies([&](std::size_t copy) {
      gemm(rows_of(hidden_, copy, first, last), Transpose::kNo, table_.compute, Transpose::kYes,
           logits[copy]);
    });
    const LossSums sums = loss_of(logits, first, last, d_logits);
    for_copies([&](std::size_t copy) {
      if (context_.tape == nullptr) return;
      gemm(d_logits[copy], Transpose::kNo, table_.compute, Transpose::kNo,
           rows_of(d_hidden_, copy, first, last));
    });
    return sums;
  }

  LossSums loss_of(const Copies& logits, int64_t first, int64_t last,
                   const Copies& d_logits) const {
    const ProfileScope scope("softmax and loss");
    for_copies([&](std::size_t copy) { profile_traffic(logits[copy], d_logits[copy]); });
    const auto& [all, smoothing, scale, r_drop] = loss_;
    const auto targets =
        all.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first));
    if (copies() == 1) return cross_entropy(logits[0], targets, smoothing, scale, d_logits[0]);
    return r_drop_cross_entropy(logits, targets, smoothing, r_drop, scale, d_logits);
  }

  Context& context_;
  const Tensor& hidden_;
  const Tensor& d_hidden_;
  Parameter& table_;
  TokenLoss loss_;
};

}  // namespace

LossSums project_cross_entropy(Context& context, const Variable& hidden, Parameter& table,
                               std::span<const int32_t> targets, float label_smoothing,
                               float gradient_scale, float r_drop) {
  const ProfileScope scope("cross-entropy");
  Tape* tape = context.tape;
  const Tensor d_hidden = tape != nullptr ? hidden.gradient_sink(*context.memory).tensor : Tensor();
  Projection projection(context, hidden.value(), d_hidden, table,
                        {targets, label_smoothing, gradient_scale, r_drop});
  const int64_t rows = projection.rows();
  const int64_t block_rows = rows_of_block(table.shape[0], context.compute) / projection.copies();
  for (int64_t first = 0; tape != nullptr && first < rows; first += block_rows) {
    tape->announce(table);  // all blocks at once: the turn is kept until the last
  }
  LossSums sums;
  for (int64_t first = 0; first < rows; first += block_rows) {
    sums += projection.block(first, std::min(rows, first + block_rows));
  }
  return sums;
}

}  // namespace attend
