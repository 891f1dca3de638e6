#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attend/data/batches.h"

namespace attend {

/// Cuts pairs, in the order given, into runs within the budget of BatchOptions::batch_tokens.
std::vector<std::span<const int64_t>> cut_by_tokens(const ParallelCorpus& corpus,
                                                    std::span<const int64_t> pairs,
                                                    int64_t batch_tokens);

/// One batch without its place.
Batch make_batch(const ParallelCorpus& corpus, std::span<const int64_t> pairs,
                 const BatchOptions& options);

/// How many pairs epoch `epoch` has, weights counted.
int64_t count_pairs(const ParallelCorpus& corpus, int64_t epoch);

/// The pairs of an epoch, in shuffled order.
std::vector<int64_t> shuffled_epoch(const ParallelCorpus& corpus, uint64_t seed, int64_t epoch);

/// Walks through the batches of a BatchStream, without a thread. See there for the order.
class BatchPlan {
 public:
  BatchPlan(const ParallelCorpus& corpus, const BatchOptions& options, DataPosition position);
  BatchPlan(const BatchPlan&) = delete;  // batches_ points into window_
  BatchPlan& operator=(const BatchPlan&) = delete;

  /// Of the batch that next() makes next.
  DataPosition position() const { return position_; }
  Batch next();

 private:
  int64_t windows() const;
  void open_epoch();
  void open_window();
  void advance();

  const ParallelCorpus& corpus_;
  BatchOptions options_;
  int64_t window_pairs_;
  DataPosition position_;
  std::vector<int64_t> epoch_;                     ///< all pairs of the epoch, shuffled
  std::vector<int64_t> window_;                    ///< the window's, sorted by length
  std::vector<std::span<const int64_t>> batches_;  ///< parts of window_, shuffled
};

}  // namespace attend
