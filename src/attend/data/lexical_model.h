#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace attend {

struct LexicalModelOptions {
  int64_t source_vocabulary = 0;
  int64_t iterations = 5;
  /// What is kept of each source token's targets: the likeliest, at most so many.
  int64_t most_targets = 50;
  /// Pairs of tokens that are in memory at once, at some 50 bytes each: 0.8 GB. Where the text has
  /// more, the half that the first pass has found least evidence for is dropped whenever it is
  /// full.
  int64_t most_entries = 16'000'000;

  /// Throws UsageError naming the field.
  void validate() const;
};

/// t(target | source).
struct LexicalTarget {
  int32_t token = 0;
  float probability = 0;
  bool operator==(const LexicalTarget&) const = default;
};

struct LexicalModel {
  /// Of each source token, likeliest first (ties: the lower id). Empty for one that is not in the
  /// text.
  std::vector<std::vector<LexicalTarget>> targets;
  /// log P(all targets | all sources), nats, under the probabilities that each iteration began
  /// with; the first began with equal ones, and has none. It rises from one to the next.
  std::vector<double> log_likelihoods;
};

/// Receives the token ids of a sentence pair, in the order of the text.
using UsePair =
    std::function<void(std::span<const int32_t> source, std::span<const int32_t> target)>;
/// Gives every pair of the text to what it is called with; called once an iteration.
using ForEachPair = std::function<void(const UsePair& use)>;

/// IBM Model 1 (Brown et al. 1993, §4.1; Och and Ney 2003): each target token comes from one of the
/// source tokens or from the empty word, all alike likely; t(target | source) by expectation
/// maximisation from equal probabilities. Those below 1e-6 become 0 after an iteration. On one
/// thread; equal pairs in equal order give equal bits.
LexicalModel train_lexical_model(const ForEachPair& pairs, const LexicalModelOptions& options);

}  // namespace attend
