#include "attend/search/attention_maps.h"

#include <algorithm>

#include "attend/data/tokenizer.h"
#include "attend/search/score.h"
#include "attend/search/text_model.h"

namespace attend {
AttentionMap attention_map(const Transformer& model, const Tokenizer& source_tokenizer,
                           const Tokenizer& target_tokenizer, const std::string& source,
                           const std::string& target, int64_t longest) {
  const TokenPair pair{source_tokenizer.encode(source), target_tokenizer.encode(target)};
  const int64_t most = std::min(longest, model.config().max_length - 1);
  for (const auto* side : {&pair.source, &pair.target}) {
    if (side->empty() || std::ssize(*side) > most) return {};
  }
  MemoryPool memory;
  AttentionMap map{.source_pieces = pieces_of(source_tokenizer, pair.source),
                   .target_pieces = pieces_of(target_tokenizer, pair.target),
                   .layers = model.config().decoder_layers,
                   .heads = model.config().heads,
                   .weights = {}};
  const SearchTokens tokens = search_tokens(source_tokenizer, target_tokenizer);
  for (int64_t layer = 0; layer < map.layers; ++layer) {
    Context context{.memory = &memory, .compute = model.compute()};
    const ForcedPass pass{.log_probs = false, .attention_layer = layer, .each_head = true};
    const auto scores = score_pairs(model, context, {&pair, 1}, tokens, pass);
    for (const std::vector<float>& row : scores[0].attention) {
      map.weights.insert(map.weights.end(), row.begin(), row.end());
    }
  }
  return map;
}

}  // namespace attend
