#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/search/hypothesis.h"
#include "attend/search/options.h"

namespace attend {

struct LineConstraints;  // search/translator.h
class Tokenizer;         // data/tokenizer.h

/// What a translation must hold, in tokens. `where` names the line in errors. Throws Error where
/// the text is no UTF-8 or the vocabulary cannot spell a required phrase.
SentenceConstraints encode_constraints(const LineConstraints& constraints,
                                       const Tokenizer& tokenizer, const std::string& where);

/// Throws, with `where`, what a search of the request would: constraints that it cannot meet.
/// longest: output tokens that the model can make.
void check_request(const SearchRequest& request, int64_t longest, const SearchTokens& tokens,
                   const SearchOptions& options, const std::string& where);

/// `tokens`, and what `words` say: each is a piece of the vocabulary where it begins with U+2581,
/// else a word or phrase, of which the tokens that the tokenizer makes of it never come in a row.
/// Throws UsageError naming a word that is not in the vocabulary.
SearchTokens with_suppressed(SearchTokens tokens, const std::vector<std::string>& words,
                             const Tokenizer& tokenizer);

}  // namespace attend
