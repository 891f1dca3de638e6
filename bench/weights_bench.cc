// Kernels on the model's tables and weights: embedding, its gradient, and the optimizer.
#include "attend/kernels/adam.h"
#include "attend/kernels/embedding.h"
#include "bench/cases.h"
#include "bench/roofline.h"

namespace attend {
namespace {

constexpr int64_t kLength = 32;
constexpr Dropout kDropout{0.1F, {7, 0, 3}};

std::vector<int64_t> sequence_offsets() {
  std::vector<int64_t> offsets;
  for (int64_t at = 0; at <= kLaneTokens; at += kLength) offsets.push_back(at);
  return offsets;
}

/// · scale, + position, · dropout's scale: 3 operations. Of the table only the lane's rows count.
void embedding(benchmark::State& state, const Size& size, DType dtype) {
  const std::vector<int32_t> ids = random_ids(kLaneTokens, size.vocabulary);
  const std::vector<int64_t> offsets = sequence_offsets();
  const Shape shape{kLaneTokens, size.d_model};
  const EmbeddingForward op{
      .ids = ids,
      .offsets = offsets,
      .table = filled({size.vocabulary, size.d_model}, DType::kFloat32),
      .scale = 16,
      .positions = sinusoidal_positions(kLength, size.d_model),
      .dropout = kDropout,
      .out = Tensor(shape, DType::kFloat32),
      .out_compute = dtype == DType::kFloat32 ? Tensor() : Tensor(shape, dtype)};
  Work work{.flops = 3.0 * static_cast<double>(op.out.count())};
  work.reads({op.table.slice_rows(0, kLaneTokens), op.positions});
  work.writes({op.out, op.out_compute});
  measure(state, work, [&] { embedding_forward(op); });
}

/// The lane's rows of the gradient (d_out1 + d_out2) · dropout's scale, then scattered: · and +.
void embedding_gradient(benchmark::State& state, const Size& size, DType dtype) {
  const std::vector<int32_t> ids = random_ids(kLaneTokens, size.vocabulary);
  const Shape shape{kLaneTokens, size.d_model};
  const bool two_forms = dtype != DType::kFloat32;
  const Tensor d_out1 = filled(shape, DType::kFloat32);
  const Tensor d_out2 = two_forms ? filled(shape, DType::kFloat32) : Tensor();
  const Tensor rows(shape, DType::kFloat32);
  const Tensor table = Tensor::zeros({size.vocabulary, size.d_model}, DType::kFloat32);
  Work work{.flops = (two_forms ? 4.0 : 3.0) * static_cast<double>(rows.count())};
  work.reads({d_out1, d_out2}).updates({rows, table.slice_rows(0, kLaneTokens)});
  measure(state, work, [&] {
    embedding_backward(kDropout, d_out1, d_out2, rows);
    scatter_add(ids, rows, 16, {}, table, 0, size.vocabulary);
  });
}

/// Clipping (1), moments (3 and 4), √ and its correction (3), weight (3), moving average (3).
void adam_with_ema(benchmark::State& state, const Size& size, DType dtype) {
  const Shape flat{size.weights};
  const AdamStep op{.learning_rate = 1e-4,
                    .gradient_scale = 0.5,
                    .step = 100,
                    .ema_decay = 0.998,
                    .weights = filled(flat, DType::kFloat32),
                    .gradient = filled(flat, DType::kFloat32),
                    .first_moment = Tensor::zeros(flat, DType::kFloat32),
                    .second_moment = Tensor::zeros(flat, DType::kFloat32),
                    .compute_copy = dtype == DType::kFloat32 ? Tensor() : Tensor(flat, dtype),
                    .average = Tensor::zeros(flat, DType::kFloat32)};
  Work work{.flops = 17.0 * static_cast<double>(size.weights)};
  work.updates({op.weights, op.gradient, op.first_moment, op.second_moment, op.average});
  work.writes({op.compute_copy});
  measure(state, work, [&] { adam_step(op, 0, size.weights); });
}

}  // namespace

void define_weight_kernels() {
  for (const Size& size : {kTiny, kBase}) {
    for (const DType dtype : dtypes()) {
      const auto add = [&](const char* kernel, auto* run) {
        benchmark::RegisterBenchmark(name_case(kernel, size, "", dtype).c_str(),
                                     [=](benchmark::State& state) { run(state, size, dtype); });
      };
      add("embedding_forward", embedding);
      add("embedding_backward", embedding_gradient);
      add("adam_ema", adam_with_ema);
    }
  }
}

}  // namespace attend
