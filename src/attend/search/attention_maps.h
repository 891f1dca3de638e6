#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/models/transformer.h"

namespace attend {

class Tokenizer;  // data/tokenizer.h

/// The encoder–decoder attention of every layer and head for one pair, for looking at.
struct AttentionMap {
  std::vector<std::string> source_pieces;  ///< as the tokenizer spells them, end of sentence last
  std::vector<std::string> target_pieces;
  int64_t layers = 0;
  int64_t heads = 0;
  /// [layers, heads, target pieces, source pieces]; each row adds up to 1.
  std::vector<float> weights;
};

/// The attention while the decoder puts out `target` for `source` (teacher forcing), or an empty
/// map where a side has no tokens or more than `longest`, or than the model takes. Both texts are
/// UTF-8. Call it from a thread that has called prepare_compute_thread(). Throws as score_pairs.
AttentionMap attention_map(const Transformer& model, const Tokenizer& source_tokenizer,
                           const Tokenizer& target_tokenizer, const std::string& source,
                           const std::string& target, int64_t longest);

}  // namespace attend
