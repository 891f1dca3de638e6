#include "attend/train/engine.h"

#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>

#include "attend/base/profile.h"
#include "attend/kernels/adam.h"
#include "attend/kernels/gemm.h"

namespace attend {
namespace {

/// Elements that one worker sweeps at a time. Sums are made chunk by chunk, so that this, and not
/// the number of workers, decides their rounding.
constexpr int64_t kChunk = int64_t{1} << 16;

TokenBatch token_batch(const Sequences& sequences) {
  return {sequences.tokens, std::make_shared<const std::vector<int64_t>>(sequences.offsets)};
}

}  // namespace

Engine::Engine(Transformer& model, const TrainOptions& options, int64_t workers)
    : model_(model), options_(options), workers_(workers, use_one_thread_here) {
  for (int64_t i = 0; i < workers; ++i) memory_.push_back(std::make_unique<MemoryPool>());
  const Shape flat{model.parameters().flat_size()};
  first_moment_ = Tensor::zeros(flat, DType::kFloat32);
  second_moment_ = Tensor::zeros(flat, DType::kFloat32);
  if (options.ema > 0) {
    average_ = Tensor::zeros(flat, DType::kFloat32);
    reset_average();
  }
}

void Engine::reset_average() {
  if (average_.defined()) convert(model_.parameters().flat_master(), average_);
}

UpdateStats Engine::update(const std::vector<Batch>& batches, int64_t step, double rate) {
  std::vector<const Lane*> lanes;
  for (const Batch& batch : batches) {
    for (const Lane& lane : batch.lanes) lanes.push_back(&lane);
  }
  UpdateStats stats;
  stats.loss = run_lanes(lanes, step, true);
  stats.gradient_norm = gradient_norm();
  stats.skipped = !std::isfinite(stats.loss.loss) || !std::isfinite(stats.gradient_norm);
  if (stats.skipped) {
    zero_gradient();
    return stats;
  }
  const bool clip = options_.clip_norm > 0 && stats.gradient_norm > options_.clip_norm;
  apply(step, rate, clip ? options_.clip_norm / stats.gradient_norm : 1.0);
  return stats;
}

LossSums Engine::validate(const std::vector<Batch>& batches) {
  LossSums sums;
  for (const Batch& batch : batches) {
    std::vector<const Lane*> lanes;
    for (const Lane& lane : batch.lanes) lanes.push_back(&lane);
    sums += run_lanes(lanes, 0, false);
  }
  return sums;
}

LossSums Engine::run_lane(const Lane& lane, int32_t number, int64_t step, float gradient_scale,
                          MemoryPool& memory, bool training) {
  Tape tape(number);
  Context context{.tape = training ? &tape : nullptr,
                  .memory = &memory,
                  .compute = model_.compute(),
                  .training = training,
                  .recompute = options_.recompute,
                  .random = {mix_seed(options_.seed, static_cast<uint64_t>(step)),
                             static_cast<uint32_t>(number), 0}};
  return model_.loss(context, token_batch(lane.source), token_batch(lane.target_input),
                     lane.target_output, gradient_scale);
}

LossSums Engine::run_lanes(const std::vector<const Lane*>& lanes, int64_t step, bool training) {
  std::size_t tokens = 0;
  for (const Lane* lane : lanes) tokens += lane->target_output.size();
  const float gradient_scale = 1.0F / static_cast<float>(std::max<std::size_t>(tokens, 1));
  if (training) model_.parameters().begin_step(static_cast<int32_t>(lanes.size()));
  std::vector<LossSums> sums(lanes.size());
  std::atomic<std::size_t> next = 0;
  // Of the failures the first is the cause; the others are workers whose step was cancelled.
  std::mutex failing;
  std::exception_ptr cause;
  workers_.run([&](int64_t worker) {
    try {
      for (std::size_t i = next++; i < lanes.size(); i = next++) {
        sums[i] = run_lane(*lanes[i], static_cast<int32_t>(i), step, gradient_scale,
                           *memory_[static_cast<std::size_t>(worker)], training);
      }
    } catch (...) {
      const std::lock_guard lock(failing);
      if (!cause) cause = std::current_exception();
      next = lanes.size();
      model_.parameters().cancel_step();
    }
  });
  if (cause) std::rethrow_exception(cause);
  if (training) {
    workers_.run([&](int64_t worker) {
      const ProfileScope scope("embedding gradients");
      model_.parameters().add_sparse_gradients(worker, workers_.size());
    });
  }
  LossSums total;
  for (const LossSums& lane : sums) total += lane;  // in the order of the lanes
  return total;
}

void Engine::for_chunks(
    const std::function<void(int64_t chunk, int64_t begin, int64_t end)>& work) {
  const int64_t size = model_.parameters().flat_size();
  std::atomic<int64_t> next = 0;
  workers_.run([&](int64_t) {
    for (int64_t chunk = next++; chunk * kChunk < size; chunk = next++) {
      work(chunk, chunk * kChunk, std::min(size, (chunk + 1) * kChunk));
    }
  });
}

double Engine::gradient_norm() {
  const Tensor& gradient = model_.parameters().flat_gradient();
  std::vector<double> sums(static_cast<std::size_t>(gradient.count() / kChunk + 1));
  for_chunks([&](int64_t chunk, int64_t begin, int64_t end) {
    const ProfileScope scope("gradient norm", 0, 4.0 * static_cast<double>(end - begin));
    sums[static_cast<std::size_t>(chunk)] = sum_of_squares(gradient, begin, end);
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return std::sqrt(total);
}

void Engine::apply(int64_t step, double rate, double gradient_scale) {
  const ParameterSet& parameters = model_.parameters();
  const AdamStep op{.learning_rate = rate,
                    .beta1 = options_.adam_beta1,
                    .beta2 = options_.adam_beta2,
                    .epsilon = options_.adam_epsilon,
                    .weight_decay = options_.weight_decay,
                    .decoupled = options_.optimizer == OptimizerKind::kAdamW,
                    .gradient_scale = gradient_scale,
                    .step = step,
                    .ema_decay = options_.ema,
                    .weights = parameters.flat_master(),
                    .gradient = parameters.flat_gradient(),
                    .first_moment = first_moment_,
                    .second_moment = second_moment_,
                    .compute_copy = parameters.flat_compute(),
                    .average = average_};
  for_chunks([&](int64_t, int64_t begin, int64_t end) {
    const ProfileScope scope("adam", 0, 34.0 * static_cast<double>(end - begin));
    adam_step(op, begin, end);
  });
}

void Engine::zero_gradient() {
  for_chunks([&](int64_t, int64_t begin, int64_t end) {
    model_.parameters().flat_gradient().slice_columns(begin, end).zero();
  });
}

int64_t Engine::measure(const Lane& lane) {
  for (const auto& pool : memory_) pool->reset_peak();
  run_lanes(std::vector<const Lane*>(memory_.size(), &lane), 0, true);
  zero_gradient();
  int64_t most = 0;
  for (const auto& pool : memory_) most = std::max(most, pool->peak_bytes());
  return most;
}

int64_t Engine::held_bytes() const {
  int64_t bytes = 0;
  for (const auto& pool : memory_) bytes += pool->held_bytes();
  return bytes;
}

void Engine::limit_memory(int64_t bytes_each) {
  for (const auto& pool : memory_) pool->limit(bytes_each);
}

void Engine::release_memory() {
  for (const auto& pool : memory_) pool->release();
}

int64_t Engine::peak_activation_bytes() const {
  int64_t bytes = 0;
  for (const auto& pool : memory_) bytes += pool->peak_bytes();
  return bytes;
}

}  // namespace attend
