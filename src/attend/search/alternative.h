#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace attend {

/// What is to be said of a translation besides its text and score. What is not asked for costs
/// nothing; alignments and attention cost another pass of the decoder over the translation.
struct DetailOptions {
  bool tokens = false;          ///< how it is cut into tokens, and the log P of each
  bool alignments = false;      ///< which words belong together
  bool attention = false;       ///< the weights behind the alignments, token by token
  int64_t alignment_layer = 0;  ///< of the decoder, from 1; 0: see alignment_layer()
  bool need_attention() const { return alignments || attention; }
};

/// A word of the source and one of the target that belong together, counted from 0.
struct WordLink {
  int32_t source = 0;
  int32_t target = 0;
  auto operator<=>(const WordLink&) const = default;  // NOLINT(modernize-use-nullptr)
};

/// One translation of a line, whether the search found it or it was given to be scored.
struct Alternative {
  std::string text;
  double log_prob = 0;  ///< nats, natural logarithm; of a line in pieces, the sum
  double score = 0;     ///< log_prob with the length penalty; of a line in pieces, the sum
  int64_t tokens = 0;   ///< end of sentence counted

  // Filled where DetailOptions asks. Of a line in pieces, all of them one after the other.

  /// The text's tokens as the tokenizer spells them, ends of sentence included.
  std::vector<std::string> target_pieces;
  std::vector<std::string> source_pieces;  ///< the source's; only where attention is asked for
  std::vector<float> token_log_probs;      ///< of each of target_pieces, given those before it
  /// Sorted, each once. Words are what spaces separate.
  std::vector<WordLink> alignment;
  /// The decoder's attention to the source, mean over heads (of an ensemble, the first model's): of
  /// each of target_pieces, a weight for each of source_pieces. Of a line in pieces, for those of
  /// its own piece.
  std::vector<std::vector<float>> attention;
};

}  // namespace attend
