#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attend {

/// How BLEU cuts a line into words.
enum class BleuTokenizer {
  k13a,   ///< mteval-v13a, the default of WMT: for languages written with spaces
  kIntl,  ///< mteval-v14's international tokenization: by Unicode's punctuation and symbols
  kChar,  ///< every character is a word
  kNone,  ///< the words are there already, with white space between them
};

std::string_view name_of(BleuTokenizer tokenizer);  ///< "13a", "intl", "char" or "none"
/// Throws UsageError listing the names that there are.
BleuTokenizer parse_bleu_tokenizer(std::string_view name);

/// The line with single spaces between its words (kNone: the line as it is).
std::string tokenize(BleuTokenizer tokenizer, std::string_view line);

struct TerOptions;
/// Tercom's tokenization: lower-casing, normalisation and removal of punctuation as `options` say,
/// then single spaces between the words.
std::string tokenize_tercom(const TerOptions& options, std::string_view line);

/// The pieces of `line` between white space, as Python's str.split() cuts it. They point into
/// `line`.
std::vector<std::string_view> split_words(std::string_view line);

}  // namespace attend
