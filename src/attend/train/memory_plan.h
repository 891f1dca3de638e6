#pragma once

#include <cstdint>

#include "attend/train/engine.h"
#include "attend/train/options.h"

namespace attend {

/// How a run stays within TrainOptions::memory: the sizes that its parts must keep to.
struct MemoryPlan {
  int64_t lane_tokens = 0;          ///< of a lane at most, or of one pair that is longer by itself
  int64_t worker_bytes = 0;         ///< what a worker may take
  int64_t search_batch_tokens = 0;  ///< of the translations that are validated
};

/// Finds the largest lanes, up to options.lane_tokens, that fit: runs lanes of the longest pairs
/// that the options let through forward and backward, and measures what they take. Call it when all
/// that lives long is there; the model and the optimizer are left as they were. Throws Error where
/// one pair of max_length is too much already, saying what it takes and what to do.
MemoryPlan plan_memory(const TrainOptions& options, Engine& engine);

}  // namespace attend
