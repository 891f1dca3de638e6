#include "attend/search/long_lines.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include "attend/data/utf8.h"

namespace attend {
namespace {

constexpr std::array<std::string_view, 6> kEnds = {".", "!", "?", "…", "؟", "।"};
/// These need no white space behind them.
constexpr std::array<std::string_view, 4> kFullWidthEnds = {"。", "！", "？", "｡"};
constexpr std::array<std::string_view, 14> kClosers = {"\"", "'", ")",  "]",  "}",  "»",  "”",
                                                       "’",  "“", "」", "』", "）", "】", "›"};

template <std::size_t N>
std::size_t match(const std::array<std::string_view, N>& any, std::string_view text) {
  for (const std::string_view one : any) {
    if (text.starts_with(one)) return one.size();
  }
  return 0;
}

std::size_t character_length(std::string_view text) {
  std::size_t length = 1;
  while (length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0U) == 0x80) {
    ++length;
  }
  return length;
}

/// Bytes of white space that `text` starts with.
std::size_t leading_space(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size()) {
    const std::size_t next = character_length(text.substr(length));
    if (!is_blank(text.substr(length, next))) break;
    length += next;
  }
  return length;
}

/// Where a text is cut in two; the white space from `end` to `begin` belongs to neither part.
struct Cut {
  std::size_t end = 0;
  std::size_t begin = 0;
};

/// The places of one kind that are nearest to the middle, found in one pass.
class NearestCut {
 public:
  explicit NearestCut(std::size_t size) : size_(size) {}

  void offer(Cut cut) {
    if (cut.end == 0 || cut.begin == size_) return;
    const std::size_t distance =
        cut.end > size_ - cut.end ? 2 * cut.end - size_ : size_ - 2 * cut.end;
    if (best_ && distance >= distance_) return;
    best_ = cut;
    distance_ = distance;
  }
  const std::optional<Cut>& best() const { return best_; }

 private:
  std::size_t size_;
  std::size_t distance_ = 0;
  std::optional<Cut> best_;
};

/// A run of marks such as "?", "...", "!)" that `text` starts with.
struct EndMarks {
  std::size_t length = 0;   ///< 0: none
  bool full_width = false;  ///< needs no white space behind it
};

EndMarks end_marks(std::string_view text) {
  EndMarks marks;
  for (;;) {
    const std::string_view rest = text.substr(marks.length);
    const std::size_t wide = match(kFullWidthEnds, rest);
    const std::size_t mark = wide > 0 ? wide : match(kEnds, rest);
    if (mark == 0) break;
    marks.full_width = wide > 0;
    marks.length += mark;
  }
  if (marks.length == 0) return marks;
  while (const std::size_t closer = match(kClosers, text.substr(marks.length))) {
    marks.length += closer;
  }
  return marks;
}

/// Between the two characters in the middle; nothing where there is only one.
std::optional<Cut> cut_anywhere(std::string_view text) {
  const auto inside = [&](std::size_t i) {
    return (static_cast<unsigned char>(text[i]) & 0xC0U) == 0x80;
  };
  std::size_t middle = text.size() / 2;
  while (middle > 0 && inside(middle)) --middle;
  if (middle == 0) middle = character_length(text);
  if (middle == text.size()) return std::nullopt;
  return Cut{middle, middle};
}

std::optional<Cut> find_cut(std::string_view text) {
  NearestCut sentence(text.size()), space(text.size());
  for (std::size_t i = 0; i < text.size();) {
    if (std::isalnum(static_cast<unsigned char>(text[i])) != 0) {  // most are: save the time
      ++i;
      continue;
    }
    const EndMarks marks = end_marks(text.substr(i));
    const std::size_t end = i + marks.length;
    const std::size_t begin = end + leading_space(text.substr(end));
    if (marks.length > 0 && (marks.full_width || begin > end)) sentence.offer({end, begin});
    if (begin > end) space.offer({end, begin});
    i = begin > i ? begin : i + character_length(text.substr(i));
  }
  if (sentence.best()) return sentence.best();
  return space.best() ? space.best() : cut_anywhere(text);
}

/// A single character may have too many tokens, where the limit is tiny or the tokenizer odd.
void cut_tokens(const std::vector<int32_t>& tokens, int64_t max_tokens,
                std::vector<std::vector<int32_t>>& pieces) {
  for (auto begin = tokens.begin(); begin != tokens.end();) {
    const auto end = begin + std::min(max_tokens, tokens.end() - begin);
    pieces.emplace_back(begin, end);
    begin = end;
  }
}

}  // namespace

std::vector<std::vector<int32_t>> encode_in_pieces(const Tokenizer& tokenizer,
                                                   std::string_view text, int64_t max_tokens) {
  std::vector<std::vector<int32_t>> pieces;
  std::vector<std::string_view> waiting = {text};  // the next one last
  while (!waiting.empty()) {
    const std::string_view part = waiting.back();
    waiting.pop_back();
    if (is_blank(part)) continue;
    // What is too long for certain need not be encoded to know it.
    std::vector<int32_t> tokens;
    const bool surely_too_long = std::ssize(part) / tokenizer.longest_piece() > max_tokens;
    if (!surely_too_long) tokens = tokenizer.encode(part);
    if (!surely_too_long && std::ssize(tokens) <= max_tokens) {
      if (!tokens.empty()) pieces.push_back(std::move(tokens));
    } else if (const std::optional<Cut> cut = find_cut(part)) {
      waiting.push_back(part.substr(cut->begin));
      waiting.push_back(part.substr(0, cut->end));
    } else {
      cut_tokens(tokens, max_tokens, pieces);
    }
  }
  return pieces;
}

}  // namespace attend
