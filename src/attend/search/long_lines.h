#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "attend/data/tokenizer.h"

namespace attend {

/// The tokens of a line in pieces of at most `max_tokens` each (contract 3). A line that is too
/// long is cut at the end of a sentence, the one nearest to its middle; where there is none, at the
/// white space nearest to its middle; else between two characters there; and so on with both parts.
/// White space at a cut is dropped, and so are parts that are nothing else. `text` must be valid
/// UTF-8.
std::vector<std::vector<int32_t>> encode_in_pieces(const Tokenizer& tokenizer,
                                                   std::string_view text, int64_t max_tokens);

}  // namespace attend
