#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attend {

/// What is said of a text besides the text and its score. What is not asked for costs nothing.
struct DetailOptions {
  bool tokens = false;  ///< how the text was cut, and the log-probability of each token
};

/// One translation of a line, whether the search found it or it was given to be scored.
struct Alternative {
  std::string text;
  double log_prob = 0;  ///< nats, natural logarithm; of a line in pieces, the sum
  double score = 0;     ///< log_prob with the length penalty; of a line in pieces, the sum
  int64_t tokens = 0;   ///< end of sentence counted

  // Filled where DetailOptions asks.
  std::vector<std::string> pieces;     ///< of the text, as the tokenizer spells them, and its end
  std::vector<float> token_log_probs;  ///< of each of the pieces, given those before it
};

}  // namespace attend
