#include "attend/kernels/embedding.h"

#include <cmath>
#include <vector>

#include "attend/base/error.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/embedding.cc"
#include "attend/kernels/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include "attend/kernels/dropout-inl.h"
#include "attend/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

template <typename T>
inline void EmbedToken(const EmbeddingForward& op, const T* row, float row_scale, int64_t token,
                       int64_t position, const float* factors) {
  const FloatTag d;
  const int64_t columns = op.table.columns();
  const float* place =
      op.positions.defined() ? op.positions.data<float>() + position * columns : nullptr;
  const auto scale = hn::Set(d, op.scale * row_scale);
  for (int64_t i = 0; i < columns; i += static_cast<int64_t>(hn::Lanes(d))) {
    const int64_t rest = columns - i, at = token * columns + i;
    auto value = hn::Mul(LoadSome(d, row + i, rest), scale);
    if (place != nullptr) value = hn::Add(value, LoadSome(d, place + i, rest));
    if (factors != nullptr) value = hn::Mul(value, hn::LoadU(d, factors + i));
    StoreSome(value, d, op.out.data<float>() + at, rest);
    if (!op.out_compute.defined()) continue;
    if (op.out_compute.dtype() == DType::kFloat32) {
      StoreSome(value, d, op.out_compute.data<float>() + at, rest);
    } else {
      StoreSome(value, d, op.out_compute.data<BFloat16>() + at, rest);
    }
  }
}

inline void EmbedToken(const EmbeddingForward& op, int64_t token, int64_t position,
                       const float* factors) {
  const auto place = static_cast<std::size_t>(token);
  const int64_t id = op.ids[place], at = id * op.table.columns();
  const float factor = op.factors.empty() ? 1.0F : op.factors[place];
  if (op.table.dtype() == DType::kInt8) {
    EmbedToken(op, op.table.data<int8_t>() + at, op.table_scales.data<float>()[id] * factor, token,
               position, factors);
  } else {
    EmbedToken(op, op.table.data<float>() + at, factor, token, position, factors);
  }
}

void Forward(const EmbeddingForward& op) {
  const int64_t columns = op.table.columns();
  thread_local std::vector<float> factors;
  factors.resize(static_cast<std::size_t>(DropoutBufferSize(columns)));
  for (std::size_t s = 0; s + 1 < op.offsets.size(); ++s) {
    const int64_t first = op.first_positions.empty() ? 0 : op.first_positions[s];
    for (int64_t token = op.offsets[s]; token < op.offsets[s + 1]; ++token) {
      if (op.dropout.active()) DropoutRow(op.dropout, token, columns, factors.data());
      EmbedToken(op, token, first + token - op.offsets[s],
                 op.dropout.active() ? factors.data() : nullptr);
    }
  }
}

void Backward(const Dropout& dropout, const Tensor& d_out1, const Tensor& d_out2,
              const Tensor& rows) {
  const FloatTag d;
  const int64_t columns = rows.columns();
  thread_local std::vector<float> factors;
  factors.resize(static_cast<std::size_t>(DropoutBufferSize(columns)));
  for (int64_t row = 0; row < rows.rows(); ++row) {
    if (dropout.active()) DropoutRow(dropout, row, columns, factors.data());
    for (int64_t i = 0; i < columns; i += static_cast<int64_t>(hn::Lanes(d))) {
      const int64_t rest = columns - i, at = row * columns + i;
      auto value = hn::Zero(d);
      if (d_out1.defined()) value = LoadSome(d, d_out1.data<float>() + at, rest);
      if (d_out2.defined()) value = hn::Add(value, LoadSome(d, d_out2.data<float>() + at, rest));
      if (dropout.active()) value = hn::Mul(value, hn::LoadU(d, factors.data() + i));
      StoreSome(value, d, rows.data<float>() + at, rest);
    }
  }
}

void ScatterAdd(std::span<const int32_t> ids, const Tensor& rows, float scale,
                std::span<const float> factors, const Tensor& table, int64_t first_id,
                int64_t last_id) {
  const FloatTag d;
  const int64_t columns = rows.columns();
  for (int64_t row = 0; row < rows.rows(); ++row) {
    const auto place = static_cast<std::size_t>(row);
    const int64_t id = ids[place];
    if (id < first_id || id >= last_id) continue;
    const auto factor = hn::Set(d, factors.empty() ? scale : scale * factors[place]);
    const float* from = rows.data<float>() + row * columns;
    float* to = table.data<float>() + id * columns;
    for (int64_t i = 0; i < columns; i += static_cast<int64_t>(hn::Lanes(d))) {
      const int64_t rest = columns - i;
      StoreSome(hn::MulAdd(LoadSome(d, from + i, rest), factor, LoadSome(d, to + i, rest)), d,
                to + i, rest);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend {

HWY_EXPORT(Forward);
HWY_EXPORT(Backward);
HWY_EXPORT(ScatterAdd);

void embedding_forward(const EmbeddingForward& op) {
  for (const int32_t id : op.ids) {
    if (id < 0 || id >= op.table.rows()) {
      fail("token id {} is outside the vocabulary of {}", id, op.table.rows());
    }
  }
  for (std::size_t s = 0; op.positions.defined() && s + 1 < op.offsets.size(); ++s) {
    const int64_t first = op.first_positions.empty() ? 0 : op.first_positions[s];
    const int64_t length = first + op.offsets[s + 1] - op.offsets[s];
    if (length > op.positions.rows()) {
      fail("a sequence of {} tokens is longer than the model's {} positions", length,
           op.positions.rows());
    }
  }
  HWY_DYNAMIC_DISPATCH(Forward)(op);
}

void embedding_backward(const Dropout& dropout, const Tensor& d_out1, const Tensor& d_out2,
                        const Tensor& rows) {
  HWY_DYNAMIC_DISPATCH(Backward)(dropout, d_out1, d_out2, rows);
}

void scatter_add(std::span<const int32_t> ids, const Tensor& rows, float scale,
                 std::span<const float> factors, const Tensor& table, int64_t first_id,
                 int64_t last_id) {
  HWY_DYNAMIC_DISPATCH(ScatterAdd)(ids, rows, scale, factors, table, first_id, last_id);
}

namespace {

/// Column i, sin(position · frequency), and column i + 1, its cosine, where there is one: by
/// rotation from one position to the next, anew every few so that errors do not add up.
void write_wave(const Tensor& table, int64_t i) {
  constexpr int64_t kFresh = 32;
  const int64_t d_model = table.columns();
  const double frequency =
      1 / std::pow(10000.0, static_cast<double>(i) / static_cast<double>(d_model));
  const double turn_sin = std::sin(frequency), turn_cos = std::cos(frequency);
  double sine = 0, cosine = 1;
  float* at = table.data<float>() + i;
  for (int64_t position = 0; position < table.rows(); ++position, at += d_model) {
    if (position % kFresh == 0) {
      sine = std::sin(static_cast<double>(position) * frequency);
      cosine = std::cos(static_cast<double>(position) * frequency);
    }
    at[0] = static_cast<float>(sine);
    if (i + 1 < d_model) at[1] = static_cast<float>(cosine);
    const double turned = sine * turn_cos + cosine * turn_sin;
    cosine = cosine * turn_cos - sine * turn_sin;
    sine = turned;
  }
}

}  // namespace

Tensor sinusoidal_positions(int64_t positions, int64_t d_model) {
  const Tensor table({positions, d_model}, DType::kFloat32);
  for (int64_t i = 0; i < d_model; i += 2) write_wave(table, i);
  return table;
}

}  // namespace attend
#endif  // HWY_ONCE
