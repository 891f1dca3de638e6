#include "attend/kernels/embedding.h"

#include "attend/autograd/ops.h"
#include "attend/autograd/traffic.h"
#include "attend/base/profile.h"

namespace attend {
namespace {

/// The position of every token in its sequence, as ids of a table of positions.
std::vector<int32_t> position_ids(const EmbeddingInput& input) {
  std::vector<int32_t> ids;
  ids.reserve(input.ids.size());
  const std::vector<int64_t>& offsets = *input.offsets;
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
    const int64_t first = input.first_positions.empty() ? 0 : input.first_positions[s];
    for (int64_t i = offsets[s]; i < offsets[s + 1]; ++i) {
      ids.push_back(static_cast<int32_t>(first + i - offsets[s]));
    }
  }
  return ids;
}

}  // namespace

Stream embedding(Context& context, const EmbeddingInput& input, Parameter& table, float scale,
                 const Tensor& positions, Parameter* learned_positions, float rate,
                 bool with_operand) {
  const ProfileScope scope("embedding forward");
  const Dropout dropout = context.dropout(rate);
  const Shape shape{static_cast<int64_t>(input.ids.size()), table.shape[1]};
  const bool two_forms = with_operand && context.compute != DType::kFloat32;
  const Tensor out = context.tensor(shape, DType::kFloat32);
  const Tensor operand = two_forms ? context.tensor(shape, context.compute) : Tensor();
  embedding_forward(
      {.ids = input.ids,
       .offsets = *input.offsets,
       .first_positions = input.first_positions,
       .table = table.quantized.values.defined() ? table.quantized.values : table.master,
       .table_scales = table.quantized.scales,
       .scale = scale,
       .factors = input.factors,
       .positions = learned_positions != nullptr ? learned_positions->master : positions,
       .dropout = dropout,
       .out = out,
       .out_compute = operand});
  profile_traffic(out, out, operand);  // the table's rows are as many bytes as `out`
  Stream result{Variable(out, DType::kFloat32), {}};
  if (with_operand) {
    result.operand = two_forms ? Variable(operand, DType::kFloat32) : result.residual;
  }
  Tape* tape = context.tape;
  if (tape == nullptr) return result;

  table.expect_sparse();
  if (learned_positions != nullptr) learned_positions->expect_sparse();
  std::vector<int32_t> places;
  if (learned_positions != nullptr) places = position_ids(input);
  tape->record("embedding backward",
               [=, &table, ids = input.ids, factors = input.factors, memory = context.memory] {
                 const Tensor& d_out1 = result.residual.gradient();
                 const Tensor d_out2 = two_forms ? result.operand.gradient() : Tensor();
                 if (!d_out1.defined() && !d_out2.defined()) return;
                 const Tensor rows(shape, DType::kFloat32, *memory);
                 embedding_backward(dropout, d_out1, d_out2, rows);
                 profile_traffic(d_out1, d_out2, rows);
                 tape->add_sparse_gradient(table, {ids, rows, scale, factors});
                 if (learned_positions != nullptr) {
                   tape->add_sparse_gradient(*learned_positions, {places, rows, 1.0F});
                 }
               });
  return result;
}

}  // namespace attend
