#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attend/data/corpus_summary.h"
#include "attend/data/permutation.h"

namespace attend {

/// How many pairs epoch `epoch` has, weights counted.
int64_t count_pairs(std::span<const CorpusPart> parts, int64_t epoch);

/// The pairs of an epoch in shuffled order, as a function of seed, epoch and position: nothing in
/// it grows with the corpus. ParallelCorpus says how often each pair comes.
class EpochOrder {
 public:
  /// The epoch must have pairs.
  EpochOrder(std::span<const CorpusPart> parts, uint64_t seed, int64_t epoch);

  int64_t size() const { return shuffled_.size(); }
  /// The pair at `position`, from 0 to size() - 1.
  int64_t operator[](int64_t position) const;

 private:
  /// Draws of one corpus that belong to this epoch: whole passes over it, or a part of one pass.
  struct Run {
    int64_t draws_before;   ///< of the epoch, in all runs before this one
    int64_t first_pair;     ///< of the corpus
    int64_t first_in_pass;  ///< which of its pass's draws is the first
    Permutation pass;       ///< which pair each draw of the pass is
    bool whole;             ///< their order does not matter, as the epoch is shuffled
  };
  std::vector<Run> runs_;
  Permutation shuffled_;
};

}  // namespace attend
