#include "attend/metrics/ngrams.h"

#include <algorithm>

#include "attend/metrics/tokenizers.h"

namespace attend {

namespace {

/// A place in one of the texts, read from there on. Text 0 is the hypothesis.
struct Suffix {
  const uint32_t* begin;
  uint32_t length;  ///< at most the highest order
  uint32_t text;
};

std::vector<Suffix> sorted_suffixes(Symbols hypothesis, std::span<const Symbols> references,
                                    size_t max_order) {
  std::vector<Suffix> suffixes;
  const auto append = [&](Symbols text, uint32_t index) {
    for (size_t i = 0; i < text.size(); ++i) {
      const size_t length = std::min(max_order, text.size() - i);
      suffixes.push_back({text.data() + i, static_cast<uint32_t>(length), index});
    }
  };
  append(hypothesis, 0);
  for (size_t r = 0; r < references.size(); ++r) {
    append(references[r], static_cast<uint32_t>(r + 1));
  }
  std::sort(suffixes.begin(), suffixes.end(), [](const Suffix& a, const Suffix& b) {
    return std::lexicographical_compare(a.begin, a.begin + a.length, b.begin, b.begin + b.length);
  });
  return suffixes;
}

uint32_t common_prefix(const Suffix& a, const Suffix& b) {
  const uint32_t limit = std::min(a.length, b.length);
  uint32_t length = 0;
  while (length < limit && a.begin[length] == b.begin[length]) ++length;
  return length;
}

/// Occurrences of one n-gram in every text.
class Occurrences {
 public:
  explicit Occurrences(size_t texts) : counts_(texts, 0) {}

  void add(uint32_t text) { ++counts_[text]; }
  /// The clipped matches of this n-gram; starts anew with none.
  int64_t take_matches() {
    const int64_t most = *std::max_element(counts_.begin() + 1, counts_.end());
    const int64_t matches = std::min(counts_[0], most);
    std::fill(counts_.begin(), counts_.end(), 0);
    return matches;
  }

 private:
  std::vector<int64_t> counts_;
};

}  // namespace

uint32_t WordIds::operator[](std::string_view word) {
  const auto found = ids_.find(word);
  if (found != ids_.end()) return found->second;
  const auto id = static_cast<uint32_t>(ids_.size());
  ids_.emplace(word, id);
  return id;
}

std::vector<uint32_t> WordIds::of_line(std::string_view line) {
  std::vector<uint32_t> ids;
  for (const std::string_view word : split_words(line)) ids.push_back((*this)[word]);
  return ids;
}

std::vector<int64_t> matching_ngrams(Symbols hypothesis, std::span<const Symbols> references,
                                     size_t max_order) {
  std::vector<int64_t> matches(max_order, 0);
  if (references.empty()) return matches;
  // Sorted, the places where an n-gram stands follow each other, for every n at once.
  const std::vector<Suffix> suffixes = sorted_suffixes(hypothesis, references, max_order);
  std::vector<Occurrences> open(max_order, Occurrences(references.size() + 1));
  for (size_t i = 0; i < suffixes.size(); ++i) {
    const uint32_t shared = i == 0 ? 0 : common_prefix(suffixes[i - 1], suffixes[i]);
    for (size_t n = shared; i > 0 && n < suffixes[i - 1].length; ++n) {
      matches[n] += open[n].take_matches();
    }
    for (size_t n = 0; n < suffixes[i].length; ++n) open[n].add(suffixes[i].text);
  }
  for (size_t n = 0; n < max_order; ++n) matches[n] += open[n].take_matches();
  return matches;
}

}  // namespace attend
