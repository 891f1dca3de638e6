#include "attend/metrics/tokenizers.h"

#include <array>
#include <utility>

#include "attend/base/error.h"
#include "attend/metrics/ter.h"
#include "attend/metrics/unicode.h"

namespace attend {

namespace {

constexpr std::array<std::pair<BleuTokenizer, std::string_view>, 4> kNames = {{
    {BleuTokenizer::k13a, "13a"},
    {BleuTokenizer::kIntl, "intl"},
    {BleuTokenizer::kChar, "char"},
    {BleuTokenizer::kNone, "none"},
}};

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

/// Also puts a space around the whole text, as the rules for periods expect.
std::string separate_symbols(std::string_view text) {
  std::string out = " ";
  for (const char byte : text) {
    if (stands_alone(byte)) {
      out.append({' ', byte, ' '});
    } else {
      out += byte;
    }
  }
  out += ' ';
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

std::string tokenize_13a(std::string_view line) {
  std::string text(line);
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  undo_escapes(text);
  return join_words(separate_periods(separate_symbols(text)));
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

/// Tercom's normalisation, without its rules for Asian scripts (off by default in sacreBLEU).
std::string normalize_tercom(std::string text) {
  replace_all(text, "\n-", "");
  replace_all(text, "\n", " ");
  undo_escapes(text);
  text = separate_symbols(text);
  replace_all(text, "'s ", " 's ");
  return separate_periods(std::move(text));
}

}  // namespace

std::string_view name_of(BleuTokenizer tokenizer) {
  for (const auto& [value, name] : kNames) {
    if (value == tokenizer) return name;
  }
  fail("unknown BLEU tokenizer {}", static_cast<int>(tokenizer));
}

BleuTokenizer parse_bleu_tokenizer(std::string_view name) {
  for (const auto& [value, known] : kNames) {
    if (known == name) return value;
  }
  fail_usage("unknown BLEU tokenizer '{}': expected 13a, intl, char or none", name);
}

std::string tokenize(BleuTokenizer tokenizer, std::string_view line) {
  switch (tokenizer) {
    case BleuTokenizer::k13a:
      return tokenize_13a(line);
    case BleuTokenizer::kIntl:
      return tokenize_intl(line);
    case BleuTokenizer::kChar:
      return tokenize_char(line);
    case BleuTokenizer::kNone:
      break;
  }
  return std::string(line);
}

std::string tokenize_tercom(const TerOptions& options, std::string_view line) {
  std::string text = options.case_sensitive ? std::string(line) : lowercase(line);
  if (options.normalized) text = normalize_tercom(std::move(text));
  if (options.no_punct) {
    std::erase_if(text, [](char byte) {
      return std::string_view(".,?:;!\"()").find(byte) != std::string_view::npos;
    });
  }
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
