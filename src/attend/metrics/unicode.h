#pragma once

#include <string>
#include <string_view>

namespace attend {

/// Unicode as Python sees it, because the metrics' reference implementations are in Python. The
/// tables are ICU's.

/// The code points of UTF-8 text. Each malformed sequence becomes one U+FFFD.
std::u32string decode_utf8(std::string_view text);
void append_utf8(std::string& text, char32_t code_point);

/// Python's str.isspace(): Unicode's white space and the separators U+001C to U+001F.
bool is_space(char32_t code_point);
bool is_number(char32_t code_point);       ///< general category N*
bool is_punctuation(char32_t code_point);  ///< general category P*
bool is_symbol(char32_t code_point);       ///< general category S*

/// Python's str.lower(): Unicode's full case maps, with the final form of sigma.
std::string lowercase(std::string_view text);

/// Without the white space at the end: Python's str.rstrip().
std::string_view strip_right(std::string_view text);
/// Without the white space at both ends: Python's str.strip().
std::string_view strip(std::string_view text);

/// The length in bytes of the white-space character that `text` starts with, 0 where it starts
/// with another.
size_t leading_space(std::string_view text);

}  // namespace attend
