#include "attend/data/utf8.h"

#include <gtest/gtest.h>
#include <iconv.h>

#include "attend/base/random.h"
#include "tests/data/test_files.h"

namespace attend {
namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";

std::string replacements(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += kReplacement;
  return text;
}

/// What the C library thinks.
bool valid_for_iconv(std::string text) {
  iconv_t converter = iconv_open("UTF-32LE", "UTF-8");
  std::string out(4 * text.size() + 8, '\0');
  char *from = text.data(), *to = out.data();
  std::size_t from_left = text.size(), to_left = out.size();
  const std::size_t result = iconv(converter, &from, &from_left, &to, &to_left);
  iconv_close(converter);
  return result != static_cast<std::size_t>(-1) && from_left == 0;
}

TEST(Utf8, EveryScalarValueIsValidAndNothingElse) {
  for (char32_t c = 0; c < 0x120000; ++c) {
    std::string text;
    append_utf8(c, text);
    const bool scalar = c < 0xD800 || (c >= 0xE000 && c < 0x110000);
    ASSERT_EQ(valid_utf8(text), scalar) << static_cast<uint32_t>(c);
    ASSERT_EQ(repair_utf8(text).changed, !scalar) << static_cast<uint32_t>(c);
  }
}

TEST(Utf8, AgreesWithTheCLibraryOnRandomBytes) {
  RandomGenerator random(5);
  int valid = 0;
  for (int i = 0; i < 200000; ++i) {
    std::string text;
    for (uint64_t n = random.uniform_index(5); n > 0; --n) {
      const uint64_t byte = random.uniform_index(4) == 0 ? random.uniform_index(256)
                                                         : 0x80 + random.uniform_index(128);
      text += static_cast<char>(byte);
    }
    ASSERT_EQ(valid_utf8(text), valid_for_iconv(text)) << testing::PrintToString(text);
    valid += valid_utf8(text) ? 1 : 0;
  }
  EXPECT_GT(valid, 1000);
}

// The Unicode Standard 15.0, section 3.9, tables 3-8 to 3-11.
TEST(Contract04, EachMaximalSubpartBecomesOneReplacement) {
  EXPECT_EQ(repair_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41").text, replacements(8) + "A");
  EXPECT_EQ(repair_utf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41").text, replacements(8) + "A");
  EXPECT_EQ(repair_utf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42").text,
            replacements(5) + "A" + replacements(2) + "B");
  EXPECT_EQ(repair_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41").text, replacements(4) + "A");
}

TEST(Contract04, ValidTextIsNotTouched) {
  const std::string text = std::string("a\0b", 3) + "\xEF\xBB\xBF…½ﬁ²😀" + kReplacement;
  const RepairedText repaired = repair_utf8(text);
  EXPECT_EQ(repaired.text, text);
  EXPECT_FALSE(repaired.changed);
}

TEST(Contract04, WhatIsRepairedIsValid) {
  RandomGenerator random(6);
  for (int i = 0; i < 20000; ++i) {
    std::string text = random_text(random, 20);
    if (!text.empty()) {
      text[random.uniform_index(text.size())] = static_cast<char>(random.uniform_index(256));
    }
    const RepairedText repaired = repair_utf8(text);
    ASSERT_TRUE(valid_utf8(repaired.text));
    ASSERT_EQ(repaired.changed, !valid_utf8(text));
    ASSERT_EQ(repair_utf8(repaired.text).text, repaired.text);
  }
}

TEST(Blank, IsUnicodeWhiteSpaceOnly) {
  EXPECT_TRUE(is_blank(""));
  EXPECT_TRUE(is_blank(" \t\v\f\r\xC2\xA0\xE3\x80\x80\xE2\x80\xA8"));
  EXPECT_FALSE(is_blank(" . "));
  EXPECT_FALSE(is_blank("\xE2\x80\x8B"));  // U+200B is no white space
}

}  // namespace
}  // namespace attend
