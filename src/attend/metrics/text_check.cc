#include "attend/metrics/text_check.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "attend/data/utf8.h"

namespace attend {

namespace {

bool contains_any(std::string_view line, std::initializer_list<std::string_view> signs) {
  return std::any_of(signs.begin(), signs.end(), [line](std::string_view sign) {
    return line.find(sign) != std::string_view::npos;
  });
}

bool ends_in_separate_period(std::string_view line) {
  return line.ends_with(" .") || line.ends_with(" 。");
}

/// "@@ " as subword-nmt writes it. Such a piece does not end a line, but cut off lines do.
bool has_joiners(std::string_view line) {
  return line.find("@@ ") != line.npos || line.ends_with("@@");
}

/// SentencePiece's space.
bool has_pieces(std::string_view line) { return line.find("▁") != line.npos; }

/// What Moses' tokenizer makes of quotes, brackets and hyphens.
bool has_moses_escapes(std::string_view line) {
  return contains_any(line, {"&apos;", "&quot;", "&#91;", "&#93;", "&#124;", " @-@ "});
}

bool has_tab(std::string_view line) { return line.find('\t') != line.npos; }
bool is_malformed(std::string_view line) { return !valid_utf8(line); }

struct Sign {
  bool (*is_in)(std::string_view line);
  /// The lines that it takes: so many, or so large a share of those with text.
  int64_t lines;
  double share;
  std::string_view meaning;
};

constexpr std::array<Sign, 6> kSigns = {{
    // sacreBLEU warns from 100 lines on, whatever the size of the text.
    {ends_in_separate_period, 100, 0.5, "end in \" .\", as tokenized text does: detokenize it"},
    {has_joiners, 100, 0.01, "have \"@@\", as subword pieces do: join them"},
    {has_pieces, 100, 0.01, "have \"▁\", as SentencePiece's pieces do: decode them"},
    {has_moses_escapes, 100, 0.01,
     "have \"&apos;\", \"&quot;\", \"@-@\" or the like, as Moses' tokenizer writes them: "
     "detokenize "
     "it"},
    {has_tab, 1, 0, "have a tab: of several references or systems, each needs a file of its own"},
    {is_malformed, 1, 0, "are no valid UTF-8: each bad sequence counts as U+FFFD"},
}};

}  // namespace

std::vector<std::string> suspicions_about(const Lines& lines) {
  std::vector<std::string> suspicions;
  const auto with_text = std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
    return !line.empty() && line != kNoReference;
  });
  for (const Sign& sign : kSigns) {
    const auto count = std::count_if(lines.begin(), lines.end(), sign.is_in);
    if (count == 0) continue;
    const auto share = static_cast<double>(count) / static_cast<double>(with_text);
    if (count < sign.lines && (sign.share == 0 || share < sign.share)) continue;
    const auto first = std::find_if(lines.begin(), lines.end(), sign.is_in) - lines.begin();
    suspicions.push_back(fmt::format("{} of {} lines {}; the first is line {}", count, lines.size(),
                                     sign.meaning, first + 1));
  }
  return suspicions;
}

}  // namespace attend
