#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "attend/base/worker_pool.h"
#include "attend/comm/communicator.h"
#include "attend/data/batches.h"
#include "attend/models/transformer.h"
#include "attend/train/options.h"
#include "attend/train/share_exchange.h"
#include "attend/train/shares.h"

namespace attend {

/// What one update did.
struct UpdateStats {
  LossSums loss;
  double gradient_norm = 0;  ///< before clipping; not finite where the update was skipped
  bool skipped = false;      ///< the loss or the gradient was not finite (contract 15)
};

/// Adam's moments and, with options.ema, the moving average of the weights; float32.
struct OptimizerState {
  Tensor first_moment, second_moment, average;
};

/// Runs updates: the lanes of a step over worker threads, then the optimizer. The result depends on
/// the lanes and on nothing else: not on the number of workers, and not on which of them ran what.
///
/// With several ranks rank 0 is called as if it were alone: it deals out the lanes, and every other
/// rank does its part in follow(). Then the result depends on the number of ranks, too. Each rank
/// keeps the optimizer's state of its share of the weights (see Shares).
class Engine {
 public:
  /// The model must have gradients. `workers` threads are started. `ranks` has several, or is null.
  Engine(Transformer& model, const TrainOptions& options, int64_t workers,
         Communicator* ranks = nullptr);

  /// Trains on the lanes of all `batches` together as update number `step` (from 1).
  UpdateStats update(const std::vector<Batch>& batches, int64_t step, double learning_rate);
  /// Loss without dropout and without gradients.
  LossSums validate(const std::vector<Batch>& batches);

  WorkerPool& workers() { return workers_; }
  int64_t weights() const { return model_.parameters().flat_size(); }
  DType compute() const { return model_.compute(); }
  /// The optimizer's state of this rank's share: all of it, laid out as the flat weights, where it
  /// is alone.
  const Tensor& first_moment() const { return state_.first_moment; }
  const Tensor& second_moment() const { return state_.second_moment; }
  const Tensor& average() const { return state_.average; }

  /// Makes the model's present weights those of all ranks and starts the moving average from them.
  void take_weights();
  /// The state of all ranks, laid out as the flat weights.
  OptimizerState gather_state();
  Tensor gather_average();
  /// Tensors for restore_state() to be filled.
  OptimizerState blank_state() const;
  /// Makes the model's present weights and this state those of all ranks.
  void restore_state(const OptimizerState& whole);
  /// Exchanges the model's weights with `flat`, to validate or save others than those that are
  /// trained; called again with the same `flat` it changes them back.
  void swap_weights(const Tensor& flat);

  /// What a rank other than 0 does: its part of all that rank 0's engine is told, until rank 0
  /// ends it. Throws what goes wrong here or there.
  void follow();

  /// The most that all workers' memory pools held at one time, added up.
  int64_t peak_activation_bytes() const;
  /// The most that a worker's pool hands out for a lane, forward and backward, in bytes, when every
  /// worker has one. The gradient is thrown away; the pools keep what they took.
  int64_t measure(const Lane& lane);
  /// What all workers' pools have of the system.
  int64_t held_bytes() const;
  /// What this rank will need at its most to exchange gradients with others and to gather their
  /// state for a checkpoint; 0 where it is alone.
  int64_t exchange_bytes() const;
  /// Workers, of all ranks, keep at most so much; see MemoryPool::limit.
  void limit_memory(int64_t bytes_each);
  /// Returns what workers keep to the system.
  void release_memory();

 private:
  /// The lanes of a step that this rank runs.
  struct Part {
    std::vector<const Lane*> lanes;
    int32_t first_lane = 0;  ///< the number of the first one in the step
    int64_t tokens = 0;      ///< target tokens of the step, of all ranks
  };

  UpdateStats run_update(const Part& part, int64_t step, double learning_rate);
  LossSums run_validation(const std::vector<Part>& parts);
  /// `exchange`, where there is one, gets the gradients.
  LossSums run_lanes(const Part& part, int64_t step, bool training, ShareExchange* exchange);
  LossSums run_lane(const Lane& lane, int32_t turn, uint32_t number, int64_t step,
                    float gradient_scale, MemoryPool& memory, bool training);
  Regularization regularization(int64_t step) const;
  /// Adds up, in the order of the ranks, what they found.
  void add_up_ranks(LossSums& loss, double& squares);
  double squares_of_gradient();
  void apply(int64_t step, double learning_rate, double gradient_scale);
  void zero_gradient();
  /// Calls work(piece) for the pieces of the flat tensors, this rank's own or all, spread over the
  /// workers.
  void for_pieces(bool own, const std::function<void(int64_t piece)>& work);
  void reset_average();

  // With several ranks (engine_ranks.cc).
  Part deal_update(const Part& all, int64_t step, double learning_rate);
  std::vector<Part> deal_validation(const std::vector<Part>& all);
  void follow_update(Message& message);
  void follow_validation(Message& message);
  bool leads() const { return ranks_ != nullptr && ranks_->rank() == 0; }
  /// Rank 0's `flat` becomes everybody's.
  void share(const Tensor& flat);
  void share_weights();
  void share_state(const OptimizerState& whole);
  void collect_state(const OptimizerState& whole);
  void collect(const Tensor& flat, const Tensor& share);
  /// Makes sure that the other ranks have the weights in place that this one has.
  void swap_on_followers();
  void follow_swap();
  template <typename Work>
  void for_state(const OptimizerState& whole, const Work& work);

  Transformer& model_;
  const TrainOptions& options_;
  Communicator* ranks_;
  Shares shares_;
  WorkerPool workers_;
  std::vector<std::unique_ptr<MemoryPool>> memory_;
  OptimizerState state_;  ///< of this rank's share
  std::unique_ptr<ShareExchange> exchange_;
  Tensor swapped_;              ///< what holds the trained weights meanwhile
  int64_t swaps_ = 0;           ///< how many there were
  int64_t followers_swap_ = 0;  ///< the one that the others are in; 0: they have the trained ones
};

}  // namespace attend
