#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attend/models/transformer.h"
#include "attend/search/hypothesis.h"
#include "attend/search/hypothesis_score.h"
#include "attend/search/options.h"

namespace attend {

/// Greedy (beam_size 1) or beam search, as in Vaswani et al. 2017, §6.1.
///
/// Every step extends each sentence's active hypotheses, at most beam_size of them, and ranks their
/// continuations by log P, the 2 · beam_size best in all: ends of sentence among the first
/// beam_size are finished hypotheses, and the best beam_size others go on. Equal ones rank by their
/// parents' rank, then by the lower token id. A hypothesis of source tokens + max_extra_length
/// tokens (the model's max_length at most) must end, whatever that costs. Once
/// n_best hypotheses are finished, those that will not beat the worst of the n_best best are
/// dropped from the last on (see Stopping), and a sentence with none left is done. Under
/// Stopping::kCertain log P at the penalty of the greatest length is the bound, which no
/// continuation can pass. Under Stopping::kFirst none is dropped, and a sentence is done with the
/// beam_size-th that finishes. Greedy search ends with the first end of sentence.
///
/// Where many hypotheses are searched at once, a sentence's good ones are run first: of the others
/// those are left out whose own log P is no more than that of beam_size continuations already
/// known, since theirs can only be less likely.
///
/// models: one, or an ensemble. Those of an ensemble decode in lockstep; P is the mean of their
/// probabilities, token by token, so that log P of an output is the sum of the logarithms of means.
/// They must have the same vocabularies.
///
/// requests: each source within the models' max_length. Returns, for each, its best n_best
/// hypotheses, best first by score; fewer where no more were finished, at least one.
///
/// Contract 6: the answer of a sentence depends on nothing else in `requests` and not on their
/// order, to the bit. They are searched in a SearchPool with the budget that
/// SearchOptions::batch_tokens says.
///
/// Throws Error where the models' scores are not numbers. Call it from a thread that has called
/// prepare_compute_thread(), with memory of its own.
std::vector<std::vector<Hypothesis>> beam_search(std::span<const Transformer* const> models,
                                                 MemoryPool& memory,
                                                 const std::vector<SearchRequest>& requests,
                                                 const SearchTokens& tokens,
                                                 const SearchOptions& options);

/// batch_tokens where it is 0: few for a small model, whose weights and keys then stay in a core's
/// cache; more where a step reads weights from memory, which many rows share.
SearchOptions with_batch_tokens(SearchOptions options, const TransformerConfig& config);

/// What a source of so many tokens takes of the budget that search_budget gives.
int64_t search_cost(int64_t source_tokens, const SearchOptions& options);
int64_t search_cost(const SearchRequest& request, const SearchOptions& options);
/// What the sources that are searched at once may cost; one that costs more is searched by itself.
int64_t search_budget(const SearchOptions& options);

/// The most memory that a search takes beside the weights, in bytes: an estimate from above, for
/// outputs as long as the options allow. Of an ensemble, each model's.
int64_t search_memory(const TransformerConfig& config, DType compute, const SearchOptions& options);

}  // namespace attend
