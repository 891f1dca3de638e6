#include "attend/data/utf8.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace attend {
namespace {

struct Sequence {
  std::size_t bytes = 1;  ///< of the character, or of the maximal subpart
  bool valid = false;
};

/// The bytes that may come second after a first byte, and how many follow it in all.
struct FirstByte {
  std::size_t following = 0;
  unsigned char second_min = 0x80;
  unsigned char second_max = 0xBF;
};

/// The Unicode Standard, table 3-7. No bytes follow a byte that cannot be first.
FirstByte classify(unsigned char byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return {1, 0x80, 0xBF};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};
  if (byte == 0xED) return {2, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {2, 0x80, 0xBF};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {3, 0x80, 0xBF};
  if (byte == 0xF4) return {3, 0x80, 0x8F};
  return {};
}

/// The sequence at the start of `text`, which is not empty.
Sequence first_sequence(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return {1, true};
  const FirstByte kind = classify(first);
  if (kind.following == 0) return {1, false};
  for (std::size_t i = 1; i <= kind.following; ++i) {
    if (i == text.size()) return {i, false};
    const auto byte = static_cast<unsigned char>(text[i]);
    const unsigned char least = i == 1 ? kind.second_min : 0x80;
    const unsigned char most = i == 1 ? kind.second_max : 0xBF;
    if (byte < least || byte > most) return {i, false};
  }
  return {kind.following + 1, true};
}

/// How many bytes from the start are valid.
std::size_t valid_prefix(std::string_view text) {
  std::size_t position = 0;
  while (position < text.size()) {
    const Sequence sequence = first_sequence(text.substr(position));
    if (!sequence.valid) break;
    position += sequence.bytes;
  }
  return position;
}

// Unicode 15, PropList.txt, White_Space.
constexpr std::array<std::string_view, 25> kWhiteSpace = {
    "\t",           "\n",           "\v",           "\f",           "\r",           " ",
    "\xC2\x85",     "\xC2\xA0",     "\xE1\x9A\x80", "\xE2\x80\x80", "\xE2\x80\x81", "\xE2\x80\x82",
    "\xE2\x80\x83", "\xE2\x80\x84", "\xE2\x80\x85", "\xE2\x80\x86", "\xE2\x80\x87", "\xE2\x80\x88",
    "\xE2\x80\x89", "\xE2\x80\x8A", "\xE2\x80\xA8", "\xE2\x80\xA9", "\xE2\x80\xAF", "\xE2\x81\x9F",
    "\xE3\x80\x80"};

}  // namespace

bool valid_utf8(std::string_view text) { return valid_prefix(text) == text.size(); }

RepairedText repair_utf8(std::string_view text) {
  RepairedText repaired;
  repaired.text.reserve(text.size());
  while (!text.empty()) {
    const std::size_t valid = valid_prefix(text);
    repaired.text += text.substr(0, valid);
    text.remove_prefix(valid);
    if (text.empty()) break;
    repaired.text += "\xEF\xBF\xBD";
    repaired.changed = true;
    text.remove_prefix(first_sequence(text).bytes);
  }
  return repaired;
}

void append_utf8(char32_t code_point, std::string& text) {
  const auto trail = [&](int shift) {
    text += static_cast<char>(0x80 | (code_point >> shift & 0x3F));
  };
  if (code_point < 0x80) {
    text += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    text += static_cast<char>(0xC0 | code_point >> 6);
    trail(0);
  } else if (code_point < 0x10000) {
    text += static_cast<char>(0xE0 | code_point >> 12);
    trail(6);
    trail(0);
  } else {
    text += static_cast<char>(0xF0 | code_point >> 18);
    trail(12);
    trail(6);
    trail(0);
  }
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

bool is_blank(std::string_view text) {
  while (!text.empty()) {
    const std::string_view character = text.substr(0, first_sequence(text).bytes);
    if (std::find(kWhiteSpace.begin(), kWhiteSpace.end(), character) == kWhiteSpace.end()) {
      return false;
    }
    text.remove_prefix(character.size());
  }
  return true;
}

}  // namespace attend
