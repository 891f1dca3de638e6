#include "attend/metrics/unicode.h"

#include <algorithm>
#include <cstdint>

#include <unicode/ucasemap.h>
#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include "attend/base/error.h"

namespace attend {

namespace {

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char byte) { return (byte & 0x80) == 0; });
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"  // within ICU's macro
/// The code point that starts at byte `at`, which moves behind it. U+FFFD where it is malformed.
char32_t next_code_point(std::string_view text, size_t& at) {
  UChar32 code_point = 0;
  U8_NEXT_OR_FFFD(text.data(), at, text.size(), code_point);
  return static_cast<char32_t>(code_point);
}
#pragma GCC diagnostic pop

void check(UErrorCode status) {
  if (U_FAILURE(status)) fail("ICU cannot map text to lower case: {}", u_errorName(status));
}

/// The root locale's case maps, which no language changes.
const UCaseMap* case_map() {
  static const UCaseMap* const map = [] {
    UErrorCode status = U_ZERO_ERROR;
    const UCaseMap* opened = ucasemap_open("", 0, &status);
    check(status);
    return opened;
  }();
  return map;
}

}  // namespace

std::u32string decode_utf8(std::string_view text) {
  std::u32string code_points;
  code_points.reserve(text.size());
  for (size_t i = 0; i < text.size();) code_points.push_back(next_code_point(text, i));
  return code_points;
}

void append_utf8(std::string& text, char32_t code_point) {
  char bytes[U8_MAX_LENGTH];
  int32_t size = 0;
  U8_APPEND_UNSAFE(bytes, size, static_cast<uint32_t>(code_point));
  text.append(bytes, static_cast<size_t>(size));
}

bool is_space(char32_t code_point) {
  if (code_point < 0x80) {
    return code_point == ' ' || (code_point >= 0x09 && code_point <= 0x0D) ||
           (code_point >= 0x1C && code_point <= 0x1F);
  }
  return u_isUWhiteSpace(static_cast<UChar32>(code_point)) != 0;
}

bool is_number(char32_t code_point) {
  return (U_GET_GC_MASK(static_cast<UChar32>(code_point)) & U_GC_N_MASK) != 0;
}

bool is_punctuation(char32_t code_point) {
  return (U_GET_GC_MASK(static_cast<UChar32>(code_point)) & U_GC_P_MASK) != 0;
}

bool is_symbol(char32_t code_point) {
  return (U_GET_GC_MASK(static_cast<UChar32>(code_point)) & U_GC_S_MASK) != 0;
}

std::string lowercase(std::string_view text) {
  if (is_ascii(text)) {
    std::string lower(text);
    for (char& byte : lower) {
      if (byte >= 'A' && byte <= 'Z') byte = static_cast<char>(byte - 'A' + 'a');
    }
    return lower;
  }
  if (text.size() > INT32_MAX / 4) fail("a line of {} bytes is too long to score", text.size());
  std::string lower(text.size() + 16, '\0');
  for (;;) {
    UErrorCode status = U_ZERO_ERROR;
    const int32_t size =
        ucasemap_utf8ToLower(case_map(), lower.data(), static_cast<int32_t>(lower.size()),
                             text.data(), static_cast<int32_t>(text.size()), &status);
    const bool fits = static_cast<size_t>(size) <= lower.size();
    lower.resize(static_cast<size_t>(size));
    if (status == U_BUFFER_OVERFLOW_ERROR && !fits) continue;
    check(status);
    return lower;
  }
}

std::string_view strip_right(std::string_view text) {
  while (!text.empty()) {
    size_t start = text.size() - 1;
    while (start > 0 && text.size() - start < U8_MAX_LENGTH && U8_IS_TRAIL(text[start])) --start;
    const std::string_view last = text.substr(start);
    if (leading_space(last) != last.size()) break;
    text.remove_suffix(last.size());
  }
  return text;
}

std::string_view strip(std::string_view text) {
  while (const size_t space = leading_space(text)) text.remove_prefix(space);
  return strip_right(text);
}

size_t leading_space(std::string_view text) {
  if (text.empty()) return 0;
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return is_space(first) ? 1 : 0;
  // U+0085, U+00A0, U+1680, U+2000 to U+205F and U+3000 start so, and most other text does not.
  if (first != 0xC2 && (first < 0xE1 || first > 0xE3)) return 0;
  size_t size = 0;
  return is_space(next_code_point(text, size)) ? size : 0;
}

}  // namespace attend
