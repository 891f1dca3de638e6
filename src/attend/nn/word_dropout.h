#pragma once

#include <vector>

#include "attend/autograd/ops.h"

namespace attend {

/// The token of every sequence that word dropout never touches: the target prefix begins with the
/// start token, the source ends with the end of sentence.
enum class KeptToken { kFirst, kLast };

/// Draws a factor for the embedding of every token (Gal & Ghahramani 2016, "A Theoretically
/// Grounded Application of Dropout in Recurrent Neural Networks", §4; Sennrich et al. 2016,
/// "Edinburgh Neural Machine Translation Systems for WMT 16"): 0 with probability `rate`, else 1 /
/// (1 - rate), and 1 for kept tokens. Each occurrence of a word is drawn by itself. Empty where
/// nothing is dropped.
std::vector<float> draw_word_dropout(Context& context, float rate, const Offsets& offsets,
                                     KeptToken kept);

}  // namespace attend
