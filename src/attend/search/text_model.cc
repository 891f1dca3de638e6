#include "attend/search/text_model.h"

#include "attend/base/error.h"
#include "attend/base/worker_pool.h"
#include "attend/data/tokenizer.h"

namespace attend {

namespace {
constexpr int64_t kMostWorkers = 4096;
}  // namespace

void check_fit(const TransformerConfig& config, const Tokenizer& source, const Tokenizer& target) {
  const auto check = [](const char* side, int64_t model, const Tokenizer& tokenizer) {
    if (model != tokenizer.vocabulary_size()) {
      fail("the model's {} vocabulary has {} tokens, but its tokenizer has {}", side, model,
           tokenizer.vocabulary_size());
    }
    if (tokenizer.bos_id() < 0 || tokenizer.eos_id() < 0) {
      fail("the {} tokenizer has no begin or no end of sentence; expected both", side);
    }
  };
  check("source", config.source_vocabulary_size, source);
  check("target", config.target_vocabulary_size, target);
  if (config.max_length < 2) {
    fail("the model's max_length is {}; translating takes 2 at least", config.max_length);
  }
}

SearchTokens search_tokens(const Tokenizer& source, const Tokenizer& target) {
  return {.source_eos = source.eos_id(),
          .bos = target.bos_id(),
          .eos = target.eos_id(),
          .suppressed = {target.unk_id()}};
}

std::vector<std::string> pieces_of(const Tokenizer& tokenizer, std::span<const int32_t> tokens) {
  std::vector<std::string> pieces;
  pieces.reserve(tokens.size() + 1);
  for (const int32_t token : tokens) pieces.push_back(tokenizer.piece(token));
  pieces.push_back(tokenizer.piece(tokenizer.eos_id()));
  return pieces;
}

void check_workers(int64_t workers) {
  if (workers >= 0 && workers <= kMostWorkers) return;
  fail_usage("workers: found {}, expected a whole number from 0, one a core, to {}", workers,
             kMostWorkers);
}

int64_t worker_count(int64_t workers) { return workers > 0 ? workers : available_cores(); }

}  // namespace attend
