#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attend/models/transformer.h"
#include "attend/search/beam_search.h"

namespace attend {

/// Token ids without begin and end of sentence.
struct TokenPair {
  std::vector<int32_t> source;
  std::vector<int32_t> target;
};

/// Tokens that a model runs through for a pair, both ends of sentence counted.
int64_t score_cost(const TokenPair& pair);

/// log P of each token of a pair's target, and of the end of sentence behind it, given the source
/// and the target tokens before it: nats, one more number than there are target tokens. One pass of
/// the decoder over the whole target at once (teacher forcing). The probabilities are those of the
/// whole vocabulary, as in the search; the numbers are the search's up to rounding, because the
/// search's attention adds in another order.
///
/// pairs: each side within the model's max_length - 1. All are one batch: the memory that it takes
/// grows with their score_cost. Contract 6: a pair's numbers depend on nothing else, to the bit.
///
/// Throws Error where a pair is too long or the model's scores are not numbers. Call it from a
/// thread that has called use_one_thread_here(), with a context of its own.
std::vector<std::vector<float>> score_tokens(const Transformer& model, Context& context,
                                             std::span<const TokenPair> pairs,
                                             const SearchTokens& tokens);

}  // namespace attend
