#include "attend/train/memory_plan.h"

#include <algorithm>

#include "attend/base/available_memory.h"
#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/search/beam_search.h"
#include "attend/train/training_data.h"

namespace attend {
namespace {

constexpr double kMiB = 1 << 20;
/// For what is not counted: text, batches made ahead, the library's own memory.
constexpr int64_t kReserve = int64_t{64} << 20;
constexpr int64_t kSmallestTrial = 256;  // tokens

double mib(int64_t bytes) { return static_cast<double>(bytes) / kMiB; }

/// `tokens` tokens on either side, in pairs as long as they may be.
Lane longest_pairs(int64_t tokens, int64_t longest, int64_t vocabulary) {
  Lane lane;
  int32_t next = 0;
  const auto append = [&](Sequences& sequences, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      sequences.tokens.push_back(next);
      next = static_cast<int32_t>((next + 1) % vocabulary);
    }
    sequences.offsets.push_back(std::ssize(sequences.tokens));
  };
  for (int64_t left = std::max(tokens, longest); left > 0; left -= longest) {
    append(lane.source, std::min(left, longest));
    append(lane.target_input, std::min(left, longest));
  }
  lane.target_output = lane.target_input.tokens;
  return lane;
}

/// What grows with the step rather than with a lane: the rows of the embeddings' gradients, the
/// batches made ahead; the tokens of a window that are segmented anew; and a copy of the weights
/// where checkpoints are averaged.
int64_t bytes_of_step(const TrainOptions& options, int64_t weights) {
  constexpr int64_t kSides = 2, kBatchesAhead = 10, kBytesOfToken = 16;
  const int64_t tokens = kSides * options.batch_tokens;
  const int64_t passes = options.regularization.r_drop > 0 ? 2 : 1;
  const int64_t rows =
      passes * tokens * options.accumulate * options.model.d_model * int64_t{sizeof(float)};
  const int64_t batches = tokens * kBytesOfToken * (kBatchesAhead + options.accumulate);
  const int64_t average = options.average_last > 0 ? weights * int64_t{sizeof(float)} : 0;
  const bool dropout = options.source_bpe_dropout > 0 || options.target_bpe_dropout > 0;
  // More pieces than without dropout, in a vector that grows by copying itself.
  constexpr int64_t kBytesOfPiece = 4 * int64_t{sizeof(int32_t)};
  const int64_t window =
      dropout ? tokens * batch_options(options).window_batches * kBytesOfPiece : 0;
  return rows + batches + average + window;
}

/// The largest budget that lets a search stay within `bytes`.
int64_t search_batch(const TrainOptions& options, DType compute, int64_t bytes) {
  SearchOptions search = with_batch_tokens({.beam_size = options.valid_beam_size}, options.model);
  while (search.batch_tokens > 1 && search_memory(options.model, compute, search) > bytes) {
    search.batch_tokens /= 2;
  }
  return search.batch_tokens;
}

class Trials {
 public:
  Trials(const TrainOptions& options, Engine& engine) : options_(options), engine_(engine) {}

  /// What the first lane brings beside its pools: the library's and the threads' own memory.
  int64_t overhead() const {
    const int64_t before = resident_bytes();
    bytes_of_lane(kSmallestTrial);
    return std::max<int64_t>(0, resident_bytes() - before - engine_.held_bytes());
  }

  int64_t bytes_of_lane(int64_t tokens) const {
    const int64_t vocabulary =
        std::min(options_.model.source_vocabulary_size, options_.model.target_vocabulary_size);
    engine_.release_memory();
    return engine_.measure(longest_pairs(tokens, options_.max_length + 1, vocabulary));
  }

  /// Goes up by what two small lanes say that a token takes, and looks whether it is so.
  int64_t largest_lane(int64_t budget) const {
    const int64_t most = options_.lane_tokens;
    const int64_t first = std::min(most, std::max(kSmallestTrial, options_.max_length + 1));
    const int64_t bytes_of_first = bytes_of_lane(first);
    if (bytes_of_first > budget) return smaller_lane(first, budget);
    if (first == most) return most;
    const int64_t second = std::min(most, 2 * first);
    const int64_t bytes_of_second = bytes_of_lane(second);
    const double a_token =
        static_cast<double>(bytes_of_second - bytes_of_first) / static_cast<double>(second - first);
    constexpr double kCareful = 0.97;  // the trial itself must stay within the budget
    const double more =
        kCareful * static_cast<double>(budget - bytes_of_first) / std::max(a_token, 1.0);
    const int64_t room = std::min(most, first + static_cast<int64_t>(std::min(more, 1e15)));
    if (room == second && bytes_of_second <= budget) return second;
    return smaller_lane(room, budget);
  }

 private:
  int64_t smaller_lane(int64_t tokens, int64_t budget) const {
    const int64_t pair = options_.max_length + 1;
    for (;; tokens = tokens * 7 / 8) {
      const int64_t bytes = bytes_of_lane(tokens);
      if (bytes <= budget) return tokens;
      if (tokens > pair) continue;
      fail(
          "memory: {} worker{} with a pair of {} tokens a side each need {:.0f} MiB more than {} "
          "allows; lower max_length or workers, set recompute, or give more",
          options_.workers, options_.workers == 1 ? "" : "s", options_.max_length,
          mib((bytes - budget) * options_.workers), to_string(options_.memory));
    }
  }

  const TrainOptions& options_;
  Engine& engine_;
};

}  // namespace

MemoryPlan plan_memory(const TrainOptions& options, Engine& engine) {
  trim_heap();  // what reading and tokenizing left behind
  const Trials trials(options, engine);
  const int64_t before = resident_bytes();
  const int64_t fixed = before + trials.overhead() + kReserve +
                        bytes_of_step(options, engine.weights()) + engine.exchange_bytes();
  const int64_t rest = options.memory.bytes - fixed;
  if (rest <= 0) {
    fail(
        "memory: the model, its optimizer and the data take {:.0f} MiB before the first batch, and "
        "{} is allowed; give more or choose a smaller model",
        mib(fixed), to_string(options.memory));
  }
  MemoryPlan plan{.worker_bytes = rest / options.workers};
  plan.lane_tokens = trials.largest_lane(plan.worker_bytes);
  plan.search_batch_tokens = search_batch(options, engine.compute(), plan.worker_bytes);
  engine.release_memory();
  logger().info(
      "memory: {:.0f} MiB are fixed, {:.0f} MiB are left to each of {} workers: lanes of "
      "{} tokens",
      mib(fixed), mib(plan.worker_bytes), options.workers, plan.lane_tokens);
  return plan;
}

}  // namespace attend
