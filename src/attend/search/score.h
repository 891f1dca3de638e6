#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attend/models/transformer.h"
#include "attend/search/hypothesis.h"

namespace attend {

/// Token ids without begin and end of sentence.
struct TokenPair {
  std::vector<int32_t> source;
  std::vector<int32_t> target;
};

/// Tokens that a model runs through for a pair, both ends of sentence counted.
int64_t score_cost(const TokenPair& pair);

/// What to learn of pairs in one pass of the decoder over their whole targets (teacher forcing).
struct ForcedPass {
  bool log_probs = true;
  int64_t attention_layer = -1;  ///< of the decoder, from 0; -1: no attention
  bool each_head = false;        ///< the attention of each head, not their mean
};

/// What a pass says of a pair; a number or row for each token of its target and the end of sentence
/// behind it.
struct PairScores {
  /// log P of each, given the source and the target tokens before it, nats.
  std::vector<float> log_probs;
  /// What the decoder attended to when it put each out, mean over heads: a weight for each source
  /// token and the source's end of sentence, 1 in all. Of each head, all rows of the first head,
  /// then those of the second, and so on.
  std::vector<std::vector<float>> attention;
};

/// The probabilities are those of the whole vocabulary, as in the search; the numbers are the
/// search's up to rounding, because the search's attention adds in another order.
///
/// pairs: each side within the model's max_length - 1. All are one batch: the memory that it takes
/// grows with their score_cost. Contract 6: a pair's numbers depend on nothing else, to the bit.
///
/// Throws Error where a pair is too long or the model's scores are not numbers. Call it from a
/// thread that has called prepare_compute_thread(), with a context of its own.
std::vector<PairScores> score_pairs(const Transformer& model, Context& context,
                                    std::span<const TokenPair> pairs, const SearchTokens& tokens,
                                    const ForcedPass& pass = {});

}  // namespace attend
