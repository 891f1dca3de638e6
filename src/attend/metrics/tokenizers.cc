#include "attend/metrics/tokenizers.h"

#include <algorithm>
#include <span>
#include <utility>

#include "attend/base/error.h"
#include "attend/metrics/ter.h"
#include "attend/metrics/tokenizer_models.h"
#include "attend/metrics/unicode.h"

namespace attend {

namespace {

enum class Kind { kRules, kMecab, kSentencePiece };

struct Known {
  BleuTokenizer tokenizer;
  std::string_view name;
  Kind kind;
};

constexpr Known kKnown[] = {
    {BleuTokenizer::k13a, "13a", Kind::kRules},
    {BleuTokenizer::kIntl, "intl", Kind::kRules},
    {BleuTokenizer::kChar, "char", Kind::kRules},
    {BleuTokenizer::kZh, "zh", Kind::kRules},
    {BleuTokenizer::kJaMecab, "ja-mecab", Kind::kMecab},
    {BleuTokenizer::kKoMecab, "ko-mecab", Kind::kMecab},
    {BleuTokenizer::kSpm, "spm", Kind::kSentencePiece},
    {BleuTokenizer::kFlores101, "flores101", Kind::kSentencePiece},
    {BleuTokenizer::kFlores200, "flores200", Kind::kSentencePiece},
    {BleuTokenizer::kSpBleu1k, "spBLEU-1K", Kind::kSentencePiece},
    {BleuTokenizer::kNone, "none", Kind::kRules},
};

const Known& known(BleuTokenizer tokenizer) {
  for (const Known& each : kKnown) {
    if (each.tokenizer == tokenizer) return each;
  }
  fail("unknown BLEU tokenizer {}", static_cast<int>(tokenizer));
}

/// The sizes are those that sacreBLEU checks.
MecabLanguage mecab_language(BleuTokenizer tokenizer) {
  if (tokenizer == BleuTokenizer::kKoMecab) {
    return {"ko-mecab",
            "mecab-ko-dic",
            811795,
            811795,
            true,
            "-KO",
            "/usr/local/lib/mecab/dic/mecab-ko-dic:/usr/lib/mecab/dic/mecab-ko-dic"};
  }
  return {
      "ja-mecab",
      "IPADIC (Debian's mecab-ipadic-utf8)",
      392126,
      392127,
      false,
      "-IPA",
      "/var/lib/mecab/dic/ipadic-utf8:/usr/local/lib/mecab/dic/ipadic:/usr/lib/mecab/dic/ipadic"};
}

bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }
bool is_period_or_comma(char byte) { return byte == '.' || byte == ','; }

/// ASCII's punctuation and symbols but for ' , - and the period.
bool stands_alone(char byte) {
  return (byte >= '{' && byte <= '~') || (byte >= '[' && byte <= '`') ||
         (byte >= ' ' && byte <= '&') || (byte >= '(' && byte <= '+') ||
         (byte >= ':' && byte <= '@') || byte == '/';
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  size_t at = text.find(from);
  if (at == std::string::npos) return;
  std::string replaced;
  size_t copied = 0;
  for (; at != std::string::npos; at = text.find(from, copied)) {
    replaced.append(text, copied, at - copied).append(to);
    copied = at + from.size();
  }
  text = replaced.append(text, copied);
}

/// In this order, so that "&amp;lt;" ends as "<".
void undo_escapes(std::string& text) {
  if (text.find('&') == std::string::npos) return;
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
}

std::string separate_symbols(std::string_view text) {
  std::string out;
  for (const char byte : text) {
    if (stands_alone(byte)) {
      out.append({' ', byte, ' '});
    } else {
      out += byte;
    }
  }
  return out;
}

/// Goes over the text as a regular expression of two characters does: where `matches` holds for a
/// pair, `write` has the pair and the next pair starts behind it.
template <typename Text, typename Matches, typename Write>
Text replace_pairs(const Text& text, Matches matches, Write write) {
  Text out;
  out.reserve(text.size() + text.size() / 4);
  size_t i = 0;
  for (; i + 1 < text.size(); ++i) {
    if (matches(text[i], text[i + 1])) {
      write(out, text[i], text[i + 1]);
      ++i;
    } else {
      out += text[i];
    }
  }
  if (i < text.size()) out += text[i];
  return out;
}

constexpr auto kSpaceAroundSecond = [](auto& out, auto first, auto second) {
  out.append({first, ' ', second, ' '});
};
constexpr auto kSpaceAroundFirst = [](auto& out, auto first, auto second) {
  out.append({' ', first, ' ', second});
};

/// mteval's rules for Western languages: periods and commas stay within numbers only, a hyphen
/// leaves the digit before it.
std::string separate_periods(std::string text) {
  text = replace_pairs(
      text, [](char a, char b) { return !is_digit(a) && is_period_or_comma(b); },
      kSpaceAroundSecond);
  text = replace_pairs(
      text, [](char a, char b) { return is_period_or_comma(a) && !is_digit(b); },
      kSpaceAroundFirst);
  return replace_pairs(
      text, [](char a, char b) { return is_digit(a) && b == '-'; }, kSpaceAroundSecond);
}

std::string join_words(std::string_view line) {
  std::string joined;
  joined.reserve(line.size());
  for (const std::string_view word : split_words(line)) {
    if (!joined.empty()) joined += ' ';
    joined += word;
  }
  return joined;
}

/// With a space around it, as the rules for periods expect.
std::string padded(std::string_view text) {
  std::string out(1, ' ');
  out.append(text).push_back(' ');
  return out;
}

std::string tokenize_western(std::string_view text) {
  return join_words(separate_periods(separate_symbols(text)));
}

std::string tokenize_13a(std::string_view line) {
  std::string text(line);
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  undo_escapes(text);
  return tokenize_western(padded(text));
}

std::string tokenize_intl(std::string_view line) {
  std::u32string text = decode_utf8(line);
  text = replace_pairs(
      text, [](char32_t a, char32_t b) { return !is_number(a) && is_punctuation(b); },
      kSpaceAroundSecond);
  text = replace_pairs(
      text, [](char32_t a, char32_t b) { return is_punctuation(a) && !is_number(b); },
      kSpaceAroundFirst);
  std::string out;
  for (const char32_t code_point : text) {
    const bool symbol = is_symbol(code_point);
    if (symbol) out += ' ';
    append_utf8(out, code_point);
    if (symbol) out += ' ';
  }
  return join_words(out);
}

std::string tokenize_char(std::string_view line) {
  std::string out;
  for (const char32_t code_point : decode_utf8(line)) {
    if (!out.empty()) out += ' ';
    append_utf8(out, code_point);
  }
  return out;
}

struct Range {
  char32_t first;
  char32_t last;
};

bool is_in(std::span<const Range> ranges, char32_t code_point) {
  return std::any_of(ranges.begin(), ranges.end(), [code_point](const Range& range) {
    return range.first <= code_point && code_point <= range.last;
  });
}

/// sacreBLEU means the ideographs of extension B by two of these ranges, but writes U+20000 as
/// U+2000 and a digit, so that what it separates is U+2001 to U+2A6D, and not extension B.
constexpr Range kChinese[] = {
    {0x2001, 0x2A6D}, {0x2E80, 0x2FDF}, {0x2FF0, 0x303F}, {0x3100, 0x312F}, {0x31A0, 0x31BF},
    {0x31C0, 0x31EF}, {0x3200, 0x33FF}, {0x3400, 0x4DB5}, {0x4E00, 0x9FBB}, {0xF900, 0xFA2D},
    {0xFA30, 0xFA6A}, {0xFA70, 0xFAD9}, {0xFE10, 0xFE1F}, {0xFE30, 0xFE4F}, {0xFF00, 0xFFEF},
};

/// What Tercom takes for a word of its own in Asian scripts: ideographs, their parts and compatible
/// forms (up to U+3F22, where sacreBLEU writes so for U+32FF).
constexpr Range kAsianCharacters[] = {{0x2E80, 0x2EFF}, {0x31C0, 0x31EF}, {0x3200, 0x4DBF},
                                      {0x4E00, 0x9FFF}, {0xF900, 0xFAFF}, {0xFE30, 0xFE4F}};
constexpr Range kAsianPunctuation[] = {{0x3001, 0x3002}, {0x3008, 0x3011}, {0x3014, 0x301F},
                                       {0x30FB, 0x30FB}, {0xFF01, 0xFF02}, {0xFF08, 0xFF09},
                                       {0xFF0C, 0xFF0C}, {0xFF0E, 0xFF0E}, {0xFF1A, 0xFF1B},
                                       {0xFF1F, 0xFF1F}, {0xFF61, 0xFF65}};

/// Puts spaces around those characters.
template <typename Predicate>
std::string separate(std::string_view text, Predicate is_apart) {
  std::string out;
  for (const char32_t code_point : decode_utf8(text)) {
    const bool apart = is_apart(code_point);
    if (apart) out += ' ';
    append_utf8(out, code_point);
    if (apart) out += ' ';
  }
  return out;
}

std::string tokenize_zh(std::string_view line) {
  return tokenize_western(
      separate(strip(line), [](char32_t code_point) { return is_in(kChinese, code_point); }));
}

/// Tercom's normalisation. Its rules for Hiragana and Katakana, as sacreBLEU writes them, hold for
/// a text that starts with them, and never here, where it starts with a space.
std::string normalize_tercom(const TerOptions& options, std::string text) {
  replace_all(text, "\n-", "");
  replace_all(text, "\n", " ");
  undo_escapes(text);
  text = separate_symbols(padded(text));
  replace_all(text, "'s ", " 's ");
  text = separate_periods(std::move(text));
  if (!options.asian_support) return text;
  return separate(text, [](char32_t code_point) {
    return is_in(kAsianCharacters, code_point) || is_in(kAsianPunctuation, code_point);
  });
}

std::string without_punctuation(const TerOptions& options, std::string text) {
  std::erase_if(text, [](char byte) {
    return std::string_view(".,?:;!\"()").find(byte) != std::string_view::npos;
  });
  if (!options.asian_support) return text;
  std::string out;
  for (const char32_t code_point : decode_utf8(text)) {
    if (!is_in(kAsianPunctuation, code_point)) append_utf8(out, code_point);
  }
  return out;
}

LineTokenizer rules_of(BleuTokenizer tokenizer) {
  switch (tokenizer) {
    case BleuTokenizer::k13a:
      return tokenize_13a;
    case BleuTokenizer::kIntl:
      return tokenize_intl;
    case BleuTokenizer::kChar:
      return tokenize_char;
    case BleuTokenizer::kZh:
      return tokenize_zh;
    default:
      return [](std::string_view line) { return std::string(line); };
  }
}

}  // namespace

std::string_view name_of(BleuTokenizer tokenizer) { return known(tokenizer).name; }

BleuTokenizer parse_bleu_tokenizer(std::string_view name) {
  std::string names;
  for (const Known& each : kKnown) {
    if (each.name == name) return each.tokenizer;
    names += (names.empty() ? "" : ", ") + std::string(each.name);
  }
  fail_usage("unknown BLEU tokenizer '{}': expected one of {}", name, names);
}

LineTokenizer load_bleu_tokenizer(BleuTokenizer tokenizer, const std::string& model) {
  const auto& [value, name, kind] = known(tokenizer);
  if (kind == Kind::kMecab) return load_mecab_tokenizer(mecab_language(tokenizer), model);
  if (kind == Kind::kSentencePiece) {
    if (model.empty()) {
      fail_usage(
          "tokenizer_model: the tokenizer {} needs a SentencePiece model; name the file that "
          "sacreBLEU downloads for it (--tokenizer-model FILE)",
          name);
    }
    return load_sentencepiece_tokenizer(model);
  }
  if (!model.empty()) {
    fail_usage("tokenizer_model: the tokenizer {} has no use for a model (found {})", name, model);
  }
  return rules_of(tokenizer);
}

std::string signature_of(BleuTokenizer tokenizer) {
  if (known(tokenizer).kind == Kind::kMecab) {
    return std::string(name_of(tokenizer)) + "-" + mecab_version() +
           mecab_language(tokenizer).signature;
  }
  return std::string(
      name_of(tokenizer == BleuTokenizer::kSpm ? BleuTokenizer::kFlores101 : tokenizer));
}

std::string tokenize_tercom(const TerOptions& options, std::string_view line) {
  std::string text = options.case_sensitive ? std::string(line) : lowercase(line);
  if (options.normalized) text = normalize_tercom(options, std::move(text));
  if (options.no_punct) text = without_punctuation(options, std::move(text));
  return join_words(text);
}

std::vector<std::string_view> split_words(std::string_view line) {
  std::vector<std::string_view> words;
  size_t start = 0;
  for (size_t i = 0; i < line.size();) {
    const size_t space = leading_space(line.substr(i));
    if (space == 0) {
      ++i;
      continue;
    }
    if (i > start) words.push_back(line.substr(start, i - start));
    i += space;
    start = i;
  }
  if (start < line.size()) words.push_back(line.substr(start));
  return words;
}

}  // namespace attend
