#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attend/search/alternative.h"

namespace attend {

class Tokenizer;  // data/tokenizer.h

/// The decoder layer, from 0, whose attention says what belongs to what. `asked` counts from 1;
/// 0 is the last layer but one, whose mean over heads aligns best (Garg et al. 2019, "Jointly
/// Learning to Align and Translate with Transformer Models"), or the only one. Throws UsageError
/// where there is no such layer.
int64_t alignment_layer(int64_t asked, int64_t decoder_layers);

/// The word of each token, from 0. Words are what spaces separate; a token that is spaces alone
/// belongs to the word behind it, or to the last one. A token of several words has the first.
std::vector<int32_t> words_of(const Tokenizer& tokenizer, std::span<const int32_t> tokens);

/// Each target token is linked to the source token that it attends to most (the first of equals),
/// the end of sentence on either side left out; the links of their words, each once, sorted.
/// attention: a row a target token, each with a weight for each source token, at least.
std::vector<WordLink> align_words(const std::vector<std::vector<float>>& attention,
                                  std::span<const int32_t> source_words,
                                  std::span<const int32_t> target_words);

}  // namespace attend
