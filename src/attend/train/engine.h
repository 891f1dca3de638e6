#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "attend/base/worker_pool.h"
#include "attend/data/batches.h"
#include "attend/models/transformer.h"
#include "attend/train/options.h"

namespace attend {

/// What one update did.
struct UpdateStats {
  LossSums loss;
  double gradient_norm = 0;  ///< before clipping; not finite where the update was skipped
  bool skipped = false;      ///< the loss or the gradient was not finite (contract 15)
};

/// Runs updates: the lanes of a step over worker threads, then the optimizer. The result depends on
/// the lanes and on nothing else: not on the number of workers, and not on which of them ran what.
class Engine {
 public:
  /// The model must have gradients. `workers` threads are started.
  Engine(Transformer& model, const TrainOptions& options, int64_t workers);

  /// Trains on the lanes of all `batches` together as update number `step` (from 1).
  UpdateStats update(const std::vector<Batch>& batches, int64_t step, double learning_rate);
  /// Loss without dropout and without gradients.
  LossSums validate(const std::vector<Batch>& batches);

  WorkerPool& workers() { return workers_; }
  /// Moments and, with options.ema, the moving average of the weights; flat, float32.
  const Tensor& first_moment() const { return first_moment_; }
  const Tensor& second_moment() const { return second_moment_; }
  const Tensor& average() const { return average_; }
  /// Starts the moving average from the present weights.
  void reset_average();
  int64_t weights() const { return model_.parameters().flat_size(); }
  DType compute() const { return model_.compute(); }
  /// The most that all workers' memory pools held at one time, added up.
  int64_t peak_activation_bytes() const;
  /// The most that a worker's pool hands out for a lane, forward and backward, in bytes, when every
  /// worker has one. The gradient is thrown away; the pools keep what they took.
  int64_t measure(const Lane& lane);
  /// What all workers' pools have of the system.
  int64_t held_bytes() const;
  /// Workers keep at most so much; see MemoryPool::limit.
  void limit_memory(int64_t bytes_each);
  /// Returns what workers keep to the system.
  void release_memory();

 private:
  LossSums run_lanes(const std::vector<const Lane*>& lanes, int64_t step, bool training);
  LossSums run_lane(const Lane& lane, int32_t number, int64_t step, float gradient_scale,
                    MemoryPool& memory, bool training);
  double gradient_norm();
  void apply(int64_t step, double learning_rate, double gradient_scale);
  void zero_gradient();
  /// Calls work(begin, end) for fixed pieces of the flat tensors, spread over the workers.
  void for_chunks(const std::function<void(int64_t chunk, int64_t begin, int64_t end)>& work);

  Transformer& model_;
  const TrainOptions& options_;
  WorkerPool workers_;
  std::vector<std::unique_ptr<MemoryPool>> memory_;
  Tensor first_moment_, second_moment_, average_;
};

}  // namespace attend
