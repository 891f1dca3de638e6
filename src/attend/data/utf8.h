#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace attend {

/// Text after repair_utf8.
struct RepairedText {
  std::string text;
  bool changed = false;
};

/// Whether `text` is well-formed UTF-8: The Unicode Standard, table 3-7 (no overlong forms, no
/// surrogates, nothing above U+10FFFF). NUL is well-formed.
bool valid_utf8(std::string_view text);

/// Replaces each bad sequence by U+FFFD, one for each maximal subpart of an ill-formed subsequence
/// (The Unicode Standard, section 3.9, "U+FFFD Substitution of Maximal Subparts"), as browsers and
/// Python do. Valid text comes back unchanged.
RepairedText repair_utf8(std::string_view text);

/// Appends one code point, which must be a Unicode scalar value.
void append_utf8(char32_t code_point, std::string& text);

/// Code points: columns on a terminal, of text whose characters are one wide. What is not valid
/// counts as something.
std::size_t count_characters(std::string_view text);

/// Whether there is nothing but Unicode white space (property White_Space) or nothing at all.
/// `text` must be valid.
bool is_blank(std::string_view text);

}  // namespace attend
