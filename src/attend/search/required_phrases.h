#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attend/search/candidate.h"

namespace attend {

/// Phrases that an output must hold, each anywhere and whole; they may overlap. A hypothesis that
/// has some of them is told by a set of bits, one a phrase.
class RequiredPhrases {
 public:
  static constexpr std::size_t kMost = 64;

  /// Empty phrases, and those that are in another, are dropped. Throws Error where more than kMost
  /// are left.
  explicit RequiredPhrases(const std::vector<std::vector<int32_t>>& phrases);

  bool empty() const { return phrases_.empty(); }
  /// Tokens of all phrases.
  int64_t total() const { return total_; }
  const std::vector<std::vector<int32_t>>& phrases() const { return phrases_; }

  /// The bits of all phrases.
  uint64_t all_met() const;
  /// `met`, and the phrases that the last token completes. tokens: all of the hypothesis.
  uint64_t met_after(uint64_t met, std::span<const int32_t> tokens) const;
  /// How many tokens are enough to complete the phrases that are not met: those of each, less what
  /// the hypothesis ends with of the phrase that it has most of. Phrases that overlap may take
  /// fewer.
  int64_t needed(uint64_t met, std::span<const int32_t> tokens) const;
  /// Tokens that start a phrase which is not met, or go on with one.
  void next_tokens(uint64_t met, std::span<const int32_t> tokens, std::vector<int32_t>& next) const;

 private:
  bool is_met(uint64_t met, std::size_t phrase) const { return (met >> phrase & 1U) != 0; }

  std::vector<std::vector<int32_t>> phrases_;
  int64_t total_ = 0;
};

/// A candidate and how many required tokens its hypothesis would still need.
struct BankedCandidate {
  Candidate candidate;
  int64_t needed = 0;
};

/// Dynamic beam allocation (Post and Vilar 2018, §3.2): the beam is divided over banks of
/// candidates that have equally many of the `total` required tokens, so that those with few do not
/// crowd out those with many. What a bank has no use for goes to those with more of the tokens
/// first. An end of sentence needs all of them, and ends among the best of its bank only.
void allocate_beam(std::vector<BankedCandidate>& candidates, int64_t total, int64_t beam_size,
                   int32_t eos, Selection& selection);

}  // namespace attend
