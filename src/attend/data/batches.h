#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "attend/data/bpe_dropout.h"
#include "attend/data/corpus.h"

namespace attend {

/// Sequences end to end: `tokens` with sequence i at [offsets[i], offsets[i + 1]).
struct Sequences {
  std::vector<int32_t> tokens;
  std::vector<int64_t> offsets = {0};  ///< count() + 1 of them, starting with 0
  int64_t count() const { return static_cast<int64_t>(offsets.size()) - 1; }
};

/// A part of a step's batch: what one worker runs at once.
struct Lane {
  Sequences source;                    ///< source tokens + EOS
  Sequences target_input;              ///< BOS + target tokens
  std::vector<int32_t> target_output;  ///< target tokens + EOS, with the offsets of target_input
  std::vector<int64_t> pair_ids;       ///< in the corpus
};

/// A batch's place in the endless row of epochs, each cut into windows, each cut into batches.
struct DataPosition {
  int64_t epoch = 0;
  int64_t window = 0;
  int64_t batch = 0;
  auto operator<=>(const DataPosition&) const = default;
};

/// What a step trains on.
struct Batch {
  std::vector<Lane> lanes;
  int64_t source_tokens = 0;  ///< EOS counted
  int64_t target_tokens = 0;  ///< EOS counted
  int64_t pairs = 0;
  DataPosition position;
  bool last_of_epoch = false;
};

struct BatchOptions {
  /// A batch holds as many pairs as keep both its source and its target tokens within this, EOS
  /// counted. A pair that is larger by itself is a batch by itself.
  int64_t batch_tokens = 4096;
  /// See make_lanes.
  int64_t lanes = 4;
  int64_t lane_tokens = 1280;
  /// What is read and, with BPE-dropout, segmented at once: pairs for about this many batches.
  int64_t window_batches = 100;
  uint64_t seed = 1;

  /// Throws UsageError naming the field.
  void validate() const;
};

/// Appends a pair's tokens.
using ReadPair = std::function<void(const StoredPair&, std::vector<int32_t>& source,
                                    std::vector<int32_t>& target)>;

/// Cuts pairs, in the order given, into lanes of nearly equal cost (source and target tokens): as
/// many as `lanes`, or the first multiple of it with which none has more than `lane_tokens` tokens
/// on either side (but for a pair that is longer by itself); fewer where there are fewer pairs.
/// Whole multiples, so that workers that divide `lanes` end a step together. The cut depends on
/// nothing else, so that the sums of a step do not depend on the number of workers. `read` has the
/// pairs' tokens; without it, the corpus has them.
std::vector<Lane> make_lanes(const ParallelCorpus& corpus, std::span<const StoredPair> pairs,
                             int64_t lanes, int64_t lane_tokens, const ReadPair& read = {});

/// All pairs once, in the corpus's order whatever the weights, in batches as BatchOptions says.
std::vector<Batch> validation_batches(const ParallelCorpus& corpus, const BatchOptions& options);

/// An endless row of training batches, made ahead by a background thread.
///
/// Epoch e is its pairs (ParallelCorpus says how often each) in an order shuffled by (seed, e)
/// (EpochOrder), cut into windows, and these, in that order, into batches by tokens: nothing is
/// padded, so that nothing is to be gained by sorting, and a batch of one length is a worse
/// estimate of the gradient (docs/data.md). A batch is thus a function of corpus, options and
/// position. In memory there are one window's lengths and the batches made ahead.
///
/// With BPE-dropout a window's pairs are segmented anew when it is opened, by (seed, e, place in
/// the shuffled order), and their new lengths are what they are cut by. Its tokens are in memory,
/// too.
class BatchStream {
 public:
  /// Starts at `position`. Throws UsageError for bad options, and Error for a position that the
  /// corpus does not have. The corpus must outlive the stream.
  BatchStream(const ParallelCorpus& corpus, const BatchOptions& options, DataPosition position = {},
              PairDropout dropout = {});
  BatchStream(const BatchStream&) = delete;
  BatchStream& operator=(const BatchStream&) = delete;
  ~BatchStream();

  /// The next batch. Waiting for it is in the profile as "waiting for data". Throws what the
  /// background thread threw.
  Batch next();
  /// Of the batch that next() gives next: a stream started there goes on just the same.
  DataPosition position() const;
  /// Pairs in epoch `epoch`, weights counted.
  int64_t pairs_in_epoch(int64_t epoch) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attend
