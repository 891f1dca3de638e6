#include "attend/autograd/parameter.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attend/base/error.h"
#include "attend/base/profile.h"
#include "attend/kernels/activation.h"
#include "attend/kernels/embedding.h"

namespace attend {
namespace {

constexpr int64_t kAlignedElements = 16;  // every parameter starts on a cache line
constexpr int32_t kCancelled = std::numeric_limits<int32_t>::max();

}  // namespace

Initializer constant(float value) {
  return [value](std::vector<float>& values, RandomGenerator&) {
    std::fill(values.begin(), values.end(), value);
  };
}

Initializer xavier_uniform(int64_t fan_in, int64_t fan_out) {
  const float limit = std::sqrt(6.0F / static_cast<float>(fan_in + fan_out));
  return [limit](std::vector<float>& values, RandomGenerator& random) {
    for (float& value : values) value = (2 * random.uniform() - 1) * limit;
  };
}

Initializer normal(float standard_deviation) {
  return [standard_deviation](std::vector<float>& values, RandomGenerator& random) {
    for (float& value : values) value = random.normal() * standard_deviation;
  };
}

void Parameter::wait_for_turn(int32_t lane) {
  int32_t turn = turn_.load(std::memory_order_acquire);
  if (turn < lane) {
    const ProfileScope scope("wait for turn");
    while (turn < lane) {
      turn_.wait(turn, std::memory_order_acquire);
      turn = turn_.load(std::memory_order_acquire);
    }
  }
  if (turn == kCancelled) fail("the step was cancelled because another worker failed");
}

void Parameter::pass_turn(int32_t lane) {
  int32_t expected = lane;  // a cancelled step stays cancelled
  const bool passed = turn_.compare_exchange_strong(expected, lane + 1, std::memory_order_acq_rel);
  turn_.notify_all();
  if (listener_ == nullptr || !passed || lane + 1 < lanes_) return;
  if (!sparse_expected_.load(std::memory_order_relaxed)) listener_->gradient_complete(*this);
}

void Parameter::begin_step(int32_t lanes, GradientListener* listener) {
  turn_.store(0, std::memory_order_release);
  lanes_ = lanes;
  listener_ = listener;
  sparse.clear();
  sparse.resize(static_cast<std::size_t>(lanes));
}

void Parameter::cancel_step() {
  turn_.store(kCancelled, std::memory_order_release);
  turn_.notify_all();
}

Parameter& ParameterSet::add(std::string name, Shape shape, Initializer initializer,
                             ParameterUse use) {
  if (flat_size_ > 0 && master_.defined()) fail("parameter {} added after allocation", name);
  Parameter& made = parameters_.emplace_back();
  made.name = std::move(name);
  made.shape = std::move(shape);
  made.initializer = std::move(initializer);
  made.use = use;
  made.offset = flat_size_;
  flat_size_ += (count_of(made.shape) + kAlignedElements - 1) / kAlignedElements * kAlignedElements;
  return made;
}

void ParameterSet::allocate(DType compute, bool with_gradients) {
  master_ = Tensor::zeros({flat_size_}, DType::kFloat32);
  if (compute != DType::kFloat32) compute_ = Tensor::zeros({flat_size_}, compute);
  if (with_gradients) gradient_ = Tensor::zeros({flat_size_}, DType::kFloat32);
  for (Parameter& parameter : parameters_) {
    const int64_t begin = parameter.offset, end = begin + count_of(parameter.shape);
    const auto view = [&](const Tensor& flat) {
      return flat.slice_columns(begin, end).reshape(parameter.shape);
    };
    parameter.master = view(master_);
    parameter.compute = compute_.defined() ? view(compute_) : parameter.master;
    if (with_gradients) parameter.gradient = view(gradient_);
  }
}

Tensor as_float32(const StoredWeight& stored) {
  return stored.scales.defined() ? dequantize({stored.values, stored.scales}) : stored.values;
}

QuantizedMatrix as_int8(const StoredWeight& stored) {
  if (stored.scales.defined()) return {stored.values, stored.scales};
  return quantize(stored.values);
}

namespace {

std::shared_ptr<const PackedMatrix> pack(const StoredWeight& stored, DType dtype) {
  if (dtype == DType::kInt8) return std::make_shared<PackedMatrix>(as_int8(stored));
  return std::make_shared<PackedMatrix>(as_float32(stored), dtype);
}

}  // namespace

void ParameterSet::load(const WeightReader& read, DType dtype) {
  for (Parameter& parameter : parameters_) {
    const StoredWeight stored = read(parameter);
    const ParameterUse use = parameter.use;
    if (use == ParameterUse::kProduct || use == ParameterUse::kTableAndProduct) {
      parameter.packed = pack(stored, dtype);
    }
    if (use == ParameterUse::kProduct) continue;
    if (use != ParameterUse::kPlain && dtype == DType::kInt8) {
      parameter.quantized = as_int8(stored);
    } else {
      parameter.master = parameter.compute = as_float32(stored);
    }
  }
}

void ParameterSet::initialize(uint64_t seed) {
  uint64_t stream = 0;
  for (const Parameter& parameter : parameters_) {
    RandomGenerator random(seed, ++stream);
    std::vector<float> values(static_cast<std::size_t>(count_of(parameter.shape)));
    parameter.initializer(values, random);
    parameter.master.assign(values);
  }
  refresh_compute();
}

void ParameterSet::refresh_compute() {
  if (compute_.defined()) convert(master_, compute_);
}

void ParameterSet::swap_master(const Tensor& flat) {
  std::swap_ranges(master_.raw(), master_.raw() + master_.bytes(), flat.raw());
  refresh_compute();
}

Parameter& ParameterSet::find(const std::string& name) {
  for (Parameter& parameter : parameters_) {
    if (parameter.name == name) return parameter;
  }
  fail("the model has no weight named '{}'", name);
}

int64_t ParameterSet::weight_count() const {
  int64_t count = 0;
  for (const Parameter& parameter : parameters_) count += count_of(parameter.shape);
  return count;
}

std::vector<std::pair<std::string, Tensor>> ParameterSet::views(const Tensor& flat) const {
  std::vector<std::pair<std::string, Tensor>> named;
  for (const Parameter& parameter : parameters_) {
    const int64_t begin = parameter.offset, end = begin + count_of(parameter.shape);
    named.emplace_back(parameter.name, flat.slice_columns(begin, end).reshape(parameter.shape));
  }
  return named;
}

void ParameterSet::begin_step(int32_t lanes, GradientListener* listener) {
  for (Parameter& parameter : parameters_) parameter.begin_step(lanes, listener);
}

void ParameterSet::cancel_step() {
  for (Parameter& parameter : parameters_) parameter.cancel_step();
}

void ParameterSet::add_sparse_gradients(int64_t part, int64_t parts) {
  for (Parameter& parameter : parameters_) {
    const int64_t rows = parameter.shape.front();
    const int64_t first = rows * part / parts, last = rows * (part + 1) / parts;
    for (const auto& lane : parameter.sparse) {
      for (const SparseGradient& sparse : lane) {
        scatter_add(sparse.ids, sparse.rows, sparse.scale, sparse.factors, parameter.gradient,
                    first, last);
        // A row is read, and one of the gradient read and written.
        profile_bytes(3.0 * static_cast<double>(sparse.rows.bytes()) / static_cast<double>(parts));
      }
    }
  }
}

}  // namespace attend
