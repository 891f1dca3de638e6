#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "attend/models/config.h"
#include "attend/search/hypothesis.h"

namespace attend {

class Tokenizer;  // data/tokenizer.h

/// Throws Error unless the tokenizers are those of a model of this configuration, and the model can
/// translate at all.
void check_fit(const TransformerConfig& config, const Tokenizer& source, const Tokenizer& target);

SearchTokens search_tokens(const Tokenizer& source, const Tokenizer& target);

/// The tokens as the tokenizer spells them, and the end of sentence.
std::vector<std::string> pieces_of(const Tokenizer& tokenizer, std::span<const int32_t> tokens);

/// Throws UsageError unless `workers` is a number that a job can be asked for; 0 is one a core.
void check_workers(int64_t workers);
/// The threads to start for a number that check_workers lets pass.
int64_t worker_count(int64_t workers);

}  // namespace attend
