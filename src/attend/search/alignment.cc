#include "attend/search/alignment.h"

#include <algorithm>
#include <string_view>

#include "attend/base/error.h"
#include "attend/data/tokenizer.h"

namespace attend {
namespace {

constexpr std::string_view kSpaceSymbol = "▁";

/// Counts words while it is shown pieces.
class WordCounter {
 public:
  /// The word that the piece begins in, or -1 where it is spaces alone.
  int32_t add(std::string_view piece) {
    // Bytes that stand for a space, or for what becomes one.
    if (piece == "<0x20>" || piece == "<0x0A>") piece = kSpaceSymbol;
    int32_t first = -1;
    while (!piece.empty()) {
      if (piece.starts_with(kSpaceSymbol)) {
        after_space_ = true;
        piece.remove_prefix(kSpaceSymbol.size());
        continue;
      }
      if (after_space_) ++word_;
      after_space_ = false;
      if (first < 0) first = word_;
      piece.remove_prefix(std::min(piece.find(kSpaceSymbol), piece.size()));
    }
    return first;
  }
  int32_t last() const { return word_; }

 private:
  int32_t word_ = -1;
  bool after_space_ = true;
};

}  // namespace

int64_t alignment_layer(int64_t asked, int64_t decoder_layers) {
  if (asked < 0 || asked > decoder_layers) {
    fail_usage("alignment_layer: found {}, expected from 1 to {}, the model's decoder layers, or 0",
               asked, decoder_layers);
  }
  return asked > 0 ? asked - 1 : std::max<int64_t>(decoder_layers - 2, 0);
}

std::vector<int32_t> words_of(const Tokenizer& tokenizer, std::span<const int32_t> tokens) {
  std::vector<int32_t> words;
  words.reserve(tokens.size());
  WordCounter counter;
  for (const int32_t token : tokens) words.push_back(counter.add(tokenizer.piece(token)));
  int32_t behind = std::max(counter.last(), 0);
  for (auto word = words.rbegin(); word != words.rend(); ++word) {
    if (*word < 0) *word = behind;
    behind = *word;
  }
  return words;
}

std::vector<WordLink> align_words(const std::vector<std::vector<float>>& attention,
                                  std::span<const int32_t> source_words,
                                  std::span<const int32_t> target_words) {
  std::vector<WordLink> links;
  if (source_words.empty()) return links;
  for (std::size_t t = 0; t < target_words.size(); ++t) {
    const auto begin = attention[t].begin();
    const auto best = std::max_element(begin, begin + std::ssize(source_words)) - begin;
    links.push_back({source_words[static_cast<std::size_t>(best)], target_words[t]});
  }
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
  return links;
}

}  // namespace attend
