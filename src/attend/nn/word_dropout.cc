#include "attend/nn/word_dropout.h"

namespace attend {

std::vector<float> draw_word_dropout(Context& context, float rate, const Offsets& offsets,
                                     KeptToken kept) {
  const Dropout dropout = context.dropout(rate);
  if (!dropout.active()) return {};
  std::vector<float> factors;
  factors.reserve(static_cast<std::size_t>(offsets->back()));
  for (std::size_t s = 0; s + 1 < offsets->size(); ++s) {
    const int64_t first = (*offsets)[s], end = (*offsets)[s + 1];
    const int64_t spared = kept == KeptToken::kFirst ? first : end - 1;
    for (int64_t token = first; token < end; ++token) {
      const float drawn = dropout.keeps(token) ? dropout.scale() : 0.0F;
      factors.push_back(token == spared ? 1.0F : drawn);
    }
  }
  return factors;
}

}  // namespace attend
