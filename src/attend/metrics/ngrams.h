#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace attend {

/// Numbers for words, so that they compare fast. Equal words have equal numbers.
class WordIds {
 public:
  uint32_t operator[](std::string_view word);
  /// The numbers of the words of a line, as split_words cuts it.
  std::vector<uint32_t> of_line(std::string_view line);

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> ids_;
};

using Symbols = std::span<const uint32_t>;  ///< numbers of words, or code points

/// How many n-grams of the hypothesis match, for n from 1 to max_order: each counts as often as it
/// stands in the hypothesis, and at most as often as in that reference where it stands most often
/// (Papineni et al. 2002, §2.1).
std::vector<int64_t> matching_ngrams(Symbols hypothesis, std::span<const Symbols> references,
                                     size_t max_order);

/// How many n-grams a text of `length` symbols has.
inline int64_t ngram_count(size_t length, size_t order) {
  return length < order ? 0 : static_cast<int64_t>(length - order + 1);
}

}  // namespace attend
