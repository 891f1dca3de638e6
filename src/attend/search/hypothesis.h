#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace attend {

class Shortlist;  // search/shortlist.h

/// One output that a search has finished.
struct Hypothesis {
  std::vector<int32_t> tokens;  ///< without begin and end of sentence
  /// log P of each token and of the end of sentence, nats: the model's, whatever the search
  /// preferred.
  std::vector<float> token_log_probs;
  double log_prob = 0;  ///< log P(tokens, end of sentence | source): their sum
  /// What ranks it: log_prob with the length penalty, after the penalties for repetition and
  /// coverage where they are asked for.
  double score = 0;
};

/// The ids that mean something to the search.
struct SearchTokens {
  int32_t source_eos = 2;  ///< ends every source sentence
  int32_t bos = 1;         ///< the decoder's first input
  int32_t eos = 2;         ///< ends every output
  /// Never put out, besides bos: unk, and what has no place inside a line. Probabilities stay those
  /// of the whole vocabulary.
  std::vector<int32_t> suppressed;
  /// Several tokens each, none empty, that never follow one another.
  std::vector<std::vector<int32_t>> suppressed_sequences;
  /// Where there is one, a sentence's output is made of the tokens that it lists for the sentence,
  /// and probabilities are those among them.
  std::shared_ptr<const Shortlist> shortlist = nullptr;
};

/// What one sentence's translation must hold.
struct SentenceConstraints {
  std::vector<int32_t> prefix;                 ///< the output begins with it
  std::vector<std::vector<int32_t>> required;  ///< each is somewhere in the output
};

/// One sentence to search a translation of.
struct SearchRequest {
  std::vector<int32_t> source;  ///< token ids without end of sentence
  SentenceConstraints constraints;
};

}  // namespace attend
