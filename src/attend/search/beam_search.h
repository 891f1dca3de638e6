#pragma once

#include <cstdint>
#include <vector>

#include "attend/models/transformer.h"
#include "attend/search/hypothesis.h"
#include "attend/search/options.h"

namespace attend {

/// log P / ((5 + |Y|) / 6)^α (Wu et al. 2016, equation 14). |Y| counts the end of sentence.
double length_penalized(double log_prob, int64_t length, double alpha);

/// Greedy (beam_size 1) or beam search, as in Vaswani et al. 2017, §6.1.
///
/// Every step extends each sentence's active hypotheses, at most beam_size of them, and ranks their
/// continuations by log P, the 2 · beam_size best in all: ends of sentence among the first
/// beam_size are finished hypotheses, and the best beam_size others go on. Equal ones rank by their
/// parents' rank, then by the lower token id. A hypothesis of source tokens + max_extra_length
/// tokens (the model's max_length at most) must end, whatever that costs. A sentence is done when
/// n_best hypotheses are finished and no active one could still beat the worst of the n_best best:
/// its log P at the penalty of the greatest length is an upper bound, so that stopping early
/// changes no answer. Greedy search ends with the first end of sentence.
///
/// Each source must be within the model's max_length. Returns, for each request, its best n_best
/// hypotheses, best first by score; fewer where no more were finished, at least one.
///
/// Contract 6: the answer of a sentence depends on nothing else in `requests` and not on their
/// order, to the bit. They are searched in groups as SearchOptions::batch_tokens says, in the
/// order given; similar lengths side by side are faster.
///
/// Throws Error where the model's scores are not numbers. Call it from a thread that has called
/// use_one_thread_here(), with a context of its own.
std::vector<std::vector<Hypothesis>> beam_search(const Transformer& model, Context& context,
                                                 const std::vector<SearchRequest>& requests,
                                                 const SearchTokens& tokens,
                                                 const SearchOptions& options);

/// What a source of so many tokens takes of the budget that search_budget gives.
int64_t search_cost(int64_t source_tokens, const SearchOptions& options);
/// A group of sources whose costs add up to at most this is searched at once; one that costs more
/// by itself is searched by itself.
int64_t search_budget(const SearchOptions& options);

/// The most memory that a search of one group takes beside the weights, in bytes: an estimate from
/// above, for outputs as long as the options allow.
int64_t search_memory(const TransformerConfig& config, DType compute, const SearchOptions& options);

}  // namespace attend
