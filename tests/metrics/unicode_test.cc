#include "attend/metrics/unicode.h"

#include <gtest/gtest.h>

namespace attend {
namespace {

TEST(Unicode, DecodesAndEncodes) {
  const std::string text = "a\u00E4\u20AC\U0001F600";
  const std::u32string decoded = decode_utf8(text);
  EXPECT_EQ(decoded, (std::u32string{U'a', 0xE4, 0x20AC, 0x1F600}));
  std::string encoded;
  for (const char32_t code_point : decoded) append_utf8(encoded, code_point);
  EXPECT_EQ(encoded, text);
}

TEST(Unicode, MalformedSequencesAreReplaced) {
  EXPECT_EQ(decode_utf8("a\xFF"
                        "b"),
            (std::u32string{U'a', 0xFFFD, U'b'}));
  EXPECT_EQ(decode_utf8("\xE2\x82"), (std::u32string{0xFFFD}));          // truncated
  EXPECT_EQ(decode_utf8("\xC0\x80"), (std::u32string{0xFFFD, 0xFFFD}));  // overlong
  EXPECT_EQ(lowercase("A\xFF"
                      "B"),
            "a\xFF"
            "b");
}

TEST(Unicode, SpacesArePythons) {
  int spaces = 0;
  for (char32_t code_point = 0; code_point < 0x110000; ++code_point) {
    if (!is_space(code_point)) continue;
    ++spaces;
    std::string text;
    append_utf8(text, code_point);
    EXPECT_EQ(leading_space(text), text.size()) << static_cast<uint32_t>(code_point);
    text.append(text).insert(0, 1, 'x');
    EXPECT_EQ(strip_right(text), "x") << static_cast<uint32_t>(code_point);
  }
  EXPECT_EQ(spaces, 29);  // sum(chr(c).isspace() for c in range(0x110000))
  EXPECT_FALSE(is_space(0x200B));
  EXPECT_EQ(leading_space(""), 0u);
  EXPECT_EQ(strip_right(" \xE2\x80"), " \xE2\x80");
  EXPECT_EQ(strip("\u3000 \tx y\u00a0 "), "x y");
  EXPECT_EQ(strip(" \u2003"), "");
}

TEST(Unicode, LowercaseIsPythons) {
  EXPECT_EQ(lowercase("ABC xyz!"), "abc xyz!");
  EXPECT_EQ(lowercase("ÄÖÜẞ ÉÀ ДОМ"), "äöüß éà дом");
  EXPECT_EQ(lowercase("ΌΣΟΣ ΑΣ. Σ"),
            "όσος ας. σ");  // final sigma ends a word and is not all of one
  EXPECT_EQ(lowercase("İ"), "i\u0307");
  EXPECT_EQ(lowercase(std::string(100, 'a') + "İİİİİİİİİİİİİİİİİİİİİİİİİİİİİİİİ").size(),
            100u + 32 * 3);
  EXPECT_EQ(lowercase(""), "");
}

TEST(Unicode, ClassesAreUnicodes) {
  for (const char32_t code_point : {U'!', U'-', U'\u2013', U'\u00AB', U'\u3002', U'_'}) {
    EXPECT_TRUE(is_punctuation(code_point)) << static_cast<uint32_t>(code_point);
  }
  for (const char32_t code_point : {U'+', U'$', U'\u20AC', U'\u00B0', U'\U0001F600', U'^'}) {
    EXPECT_TRUE(is_symbol(code_point)) << static_cast<uint32_t>(code_point);
    EXPECT_FALSE(is_punctuation(code_point)) << static_cast<uint32_t>(code_point);
  }
  for (const char32_t code_point : {U'7', U'\u00B2', U'\u00BD', U'\u2167', U'\u0661'}) {
    EXPECT_TRUE(is_number(code_point)) << static_cast<uint32_t>(code_point);
  }
  EXPECT_FALSE(is_number(U'a'));
}

}  // namespace
}  // namespace attend
