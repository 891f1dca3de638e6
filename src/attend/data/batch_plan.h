#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "attend/data/batches.h"
#include "attend/data/epoch_order.h"

namespace attend {

/// Cuts pairs, in the order given, into runs within the budget of BatchOptions::batch_tokens.
std::vector<std::span<const StoredPair>> cut_by_tokens(std::span<const StoredPair> pairs,
                                                       int64_t batch_tokens);

/// The same, into as few runs, but as equal ones as can be: the last is no remainder.
std::vector<std::span<const StoredPair>> cut_alike(std::span<const StoredPair> pairs,
                                                   int64_t batch_tokens);

/// One batch without its place.
Batch make_batch(const ParallelCorpus& corpus, std::span<const StoredPair> pairs,
                 const BatchOptions& options, const ReadPair& read = {});

/// Walks through the batches of a BatchStream, without a thread. See there for the order.
class BatchPlan {
 public:
  BatchPlan(const ParallelCorpus& corpus, const BatchOptions& options, DataPosition position,
            PairDropout dropout = {});
  BatchPlan(const BatchPlan&) = delete;  // batches_ points into window_
  BatchPlan& operator=(const BatchPlan&) = delete;

  /// Of the batch that next() makes next.
  DataPosition position() const { return position_; }
  Batch next();

 private:
  int64_t windows() const;
  void open_epoch();
  void open_window();
  /// Positions [first, second) in the epoch.
  std::pair<int64_t, int64_t> bounds_of(int64_t window) const;
  void expect_window(int64_t window) const;
  void segment_window();
  void advance();

  const ParallelCorpus& corpus_;
  BatchOptions options_;
  PairDropout dropout_;
  int64_t window_pairs_;
  DataPosition position_;
  std::optional<EpochOrder> order_;                   ///< of the epoch
  std::vector<StoredPair> window_;                    ///< the window's pairs, in the epoch's order
  std::vector<int32_t> tokens_;                       ///< with dropout: what window_ points into
  ReadPair read_;                                     ///< with dropout: from tokens_
  std::vector<std::span<const StoredPair>> batches_;  ///< parts of window_
};

}  // namespace attend
