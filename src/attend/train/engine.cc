#include "attend/train/engine.h"

#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>

#include "attend/base/profile.h"
#include "attend/kernels/activation.h"
#include "attend/kernels/adam.h"
#include "attend/kernels/compute_thread.h"

namespace attend {
namespace {

/// Updates count from 1.
constexpr int64_t kNoUpdate = 0;

TokenBatch token_batch(const Sequences& sequences) {
  return {sequences.tokens, std::make_shared<const std::vector<int64_t>>(sequences.offsets)};
}

}  // namespace

Engine::Engine(Transformer& model, const TrainOptions& options, int64_t workers,
               Communicator* ranks)
    : model_(model),
      options_(options),
      ranks_(ranks),
      shares_(model.parameters().flat_size(), ranks != nullptr ? ranks->rank() : 0,
              ranks != nullptr ? ranks->size() : 1),
      workers_(workers, prepare_compute_thread) {
  for (int64_t i = 0; i < workers; ++i) memory_.push_back(std::make_unique<MemoryPool>());
  const Shape share{ranks != nullptr ? shares_.share_size() : model.parameters().flat_size()};
  state_.first_moment = Tensor::zeros(share, DType::kFloat32);
  state_.second_moment = Tensor::zeros(share, DType::kFloat32);
  if (options.ema > 0) {
    state_.average = Tensor::zeros(share, DType::kFloat32);
    reset_average();
  }
  if (ranks != nullptr) {
    exchange_ = std::make_unique<ShareExchange>(*ranks, model.parameters(), shares_);
  }
}

void Engine::reset_average() {
  if (!state_.average.defined()) return;
  for_pieces(true, [&](int64_t piece) {
    convert(shares_.in_flat(model_.parameters().flat_master(), piece),
            shares_.in_share(state_.average, piece));
  });
}

UpdateStats Engine::update(const std::vector<Batch>& batches, int64_t step, double rate) {
  Part all;
  for (const Batch& batch : batches) {
    for (const Lane& lane : batch.lanes) {
      all.lanes.push_back(&lane);
      all.tokens += std::ssize(lane.target_output);
    }
  }
  return run_update(leads() ? deal_update(all, step, rate) : all, step, rate);
}

UpdateStats Engine::run_update(const Part& part, int64_t step, double rate) {
  UpdateStats stats;
  stats.loss = run_lanes(part, step, true, exchange_.get());
  double squares = squares_of_gradient();
  if (ranks_ != nullptr) add_up_ranks(stats.loss, squares);
  stats.gradient_norm = std::sqrt(squares);
  stats.skipped = !std::isfinite(stats.loss.loss) || !std::isfinite(stats.gradient_norm);
  if (stats.skipped) {
    zero_gradient();
  } else {
    const bool clip = options_.clip_norm > 0 && stats.gradient_norm > options_.clip_norm;
    apply(step, rate, clip ? options_.clip_norm / stats.gradient_norm : 1.0);
  }
  if (leads()) ranks_->set_busy(false);
  return stats;
}

LossSums Engine::validate(const std::vector<Batch>& batches) {
  std::vector<Part> parts;
  for (const Batch& batch : batches) {
    Part& part = parts.emplace_back();
    for (const Lane& lane : batch.lanes) part.lanes.push_back(&lane);
  }
  return run_validation(leads() ? deal_validation(parts) : parts);
}

LossSums Engine::run_validation(const std::vector<Part>& parts) {
  LossSums sums;
  for (const Part& part : parts) sums += run_lanes(part, kNoUpdate, false, nullptr);
  double nothing = 0;
  if (ranks_ != nullptr) add_up_ranks(sums, nothing);
  if (leads()) ranks_->set_busy(false);
  return sums;
}

Regularization Engine::regularization(int64_t step) const {
  Regularization here = options_.regularization;
  if (step == kNoUpdate) here.layer_drop = 0;  // what is measured must be the most
  return here;
}

LossSums Engine::run_lane(const Lane& lane, int32_t turn, uint32_t number, int64_t step,
                          float gradient_scale, MemoryPool& memory, bool training) {
  Tape tape(turn);
  Context context{.tape = training ? &tape : nullptr,
                  .memory = &memory,
                  .compute = model_.compute(),
                  .training = training,
                  .recompute = options_.recompute,
                  .regularization = regularization(step),
                  .random = {mix_seed(options_.seed, static_cast<uint64_t>(step)), number, 0}};
  return model_.loss(context, token_batch(lane.source), token_batch(lane.target_input),
                     lane.target_output, gradient_scale);
}

LossSums Engine::run_lanes(const Part& part, int64_t step, bool training, ShareExchange* exchange) {
  const std::vector<const Lane*>& lanes = part.lanes;
  const float gradient_scale = 1.0F / static_cast<float>(std::max<int64_t>(part.tokens, 1));
  if (training) {
    if (exchange != nullptr) exchange->begin_reduction();
    model_.parameters().begin_step(static_cast<int32_t>(lanes.size()), exchange);
  }
  std::vector<LossSums> sums(lanes.size());
  std::atomic<std::size_t> next = 0;
  // Of the failures the first is the cause; the others are workers whose step was cancelled.
  std::mutex failing;
  std::exception_ptr cause;
  workers_.run([&](int64_t worker) {
    try {
      for (std::size_t i = next++; i < lanes.size(); i = next++) {
        sums[i] = run_lane(*lanes[i], static_cast<int32_t>(i),
                           static_cast<uint32_t>(part.first_lane) + static_cast<uint32_t>(i), step,
                           gradient_scale, *memory_[static_cast<std::size_t>(worker)], training);
      }
    } catch (...) {
      const std::lock_guard lock(failing);
      if (!cause) cause = std::current_exception();
      next = lanes.size();
      model_.parameters().cancel_step();
    }
  });
  if (cause) {
    const std::exception_ptr elsewhere = exchange != nullptr ? exchange->cancel() : nullptr;
    std::rethrow_exception(elsewhere ? elsewhere : cause);
  }
  if (training) {
    workers_.run([&](int64_t worker) {
      const ProfileScope scope("embedding gradients");
      model_.parameters().add_sparse_gradients(worker, workers_.size());
    });
    if (exchange != nullptr) exchange->finish_reduction();
  }
  LossSums total;
  for (const LossSums& lane : sums) total += lane;  // in the order of the lanes
  return total;
}

void Engine::for_pieces(bool own, const std::function<void(int64_t piece)>& work) {
  const int64_t first = own ? shares_.rank() : 0, step = own ? shares_.ranks() : 1;
  std::atomic<int64_t> next = 0;
  workers_.run([&](int64_t) {
    for (int64_t piece = first + next++ * step; piece < shares_.pieces();
         piece = first + next++ * step) {
      work(piece);
    }
  });
}

double Engine::squares_of_gradient() {
  const Tensor& gradient = model_.parameters().flat_gradient();
  std::vector<double> sums(static_cast<std::size_t>(shares_.pieces()));
  for_pieces(true, [&](int64_t piece) {
    const ProfileScope scope("gradient norm", 0, 4.0 * static_cast<double>(shares_.size(piece)));
    sums[static_cast<std::size_t>(piece)] =
        sum_of_squares(gradient, shares_.begin(piece), shares_.end(piece));
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

void Engine::apply(int64_t step, double rate, double gradient_scale) {
  const ParameterSet& parameters = model_.parameters();
  const Tensor& compute = parameters.flat_compute();
  if (exchange_) exchange_->begin_gather(parameters.flat_master());
  for_pieces(true, [&](int64_t piece) {
    const ProfileScope scope("adam", 0, 34.0 * static_cast<double>(shares_.size(piece)));
    const auto of_flat = [&](const Tensor& flat) {
      return flat.defined() ? shares_.in_flat(flat, piece) : flat;
    };
    const auto of_share = [&](const Tensor& share) {
      return share.defined() ? shares_.in_share(share, piece) : share;
    };
    adam_step({.learning_rate = rate,
               .beta1 = options_.adam_beta1,
               .beta2 = options_.adam_beta2,
               .epsilon = options_.adam_epsilon,
               .weight_decay = options_.weight_decay,
               .decoupled = options_.optimizer == OptimizerKind::kAdamW,
               .gradient_scale = gradient_scale,
               .step = step,
               .ema_decay = options_.ema,
               .weights = of_flat(parameters.flat_master()),
               .gradient = of_flat(parameters.flat_gradient()),
               .first_moment = of_share(state_.first_moment),
               .second_moment = of_share(state_.second_moment),
               .compute_copy = of_flat(compute),
               .average = of_share(state_.average)},
              0, shares_.size(piece));
    if (exchange_) exchange_->piece_ready(piece);
  });
  if (!exchange_) return;
  exchange_->finish_gather();
  for_pieces(false, [&](int64_t piece) {
    if (shares_.is_mine(piece)) return;
    const ProfileScope scope("take weights of other ranks");
    shares_.in_flat(parameters.flat_gradient(), piece).zero();
    if (!compute.defined()) return;
    convert(shares_.in_flat(parameters.flat_master(), piece), shares_.in_flat(compute, piece));
  });
}

void Engine::zero_gradient() {
  for_pieces(false, [&](int64_t piece) {
    shares_.in_flat(model_.parameters().flat_gradient(), piece).zero();
  });
}

int64_t Engine::measure(const Lane& lane) {
  for (const auto& pool : memory_) pool->reset_peak();
  const Part part{.lanes = std::vector<const Lane*>(memory_.size(), &lane)};
  run_lanes(part, kNoUpdate, true, nullptr);
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

void Engine::release_memory() {
  for (const auto& pool : memory_) pool->release();
}

int64_t Engine::peak_activation_bytes() const {
  int64_t bytes = 0;
  for (const auto& pool : memory_) bytes += pool->peak_bytes();
  return bytes;
}

}  // namespace attend
