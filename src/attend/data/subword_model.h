#pragma once

#include <string_view>

namespace attend {

/// How the pieces of a tokenizer are found: byte-pair encoding or a unigram language model.
enum class SubwordModel { kBpe, kUnigram };
/// "bpe", "unigram".
std::string_view name_of(SubwordModel value);

}  // namespace attend
