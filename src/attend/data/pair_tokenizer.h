#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/data/corpus_options.h"
#include "attend/data/corpus_summary.h"
#include "attend/data/token_store.h"
#include "attend/data/tokenizer.h"

namespace attend {

struct TextPair {
  std::string source;
  std::string target;
};

/// Some pairs after tokenizing and filtering.
struct TokenizedPairs {
  TokenChunk tokens;
  CorpusReport report;
  int64_t source_tokens = 0;
  int64_t target_tokens = 0;
  SequenceFingerprint fingerprint;  ///< of the pairs kept
};

/// Tokenizes pairs and says which are left out, and why. May be used by many threads at once.
class PairTokenizer {
 public:
  /// All must outlive it. Throws Error where a tokenizer lacks BOS or EOS.
  PairTokenizer(const CorpusOptions& options, const Tokenizer& source, const Tokenizer& target);

  TokenizedPairs operator()(const std::vector<TextPair>& pairs) const;
  Vocabularies vocabularies() const;

 private:
  void add(const TextPair& pair, TokenizedPairs& made) const;
  void add_tokens(const std::vector<int32_t>& source, const std::vector<int32_t>& target,
                  TokenizedPairs& made) const;
  bool surely_too_long(std::string_view text, const Tokenizer& tokenizer) const;

  const CorpusOptions& options_;
  const Tokenizer& source_;
  const Tokenizer& target_;
};

}  // namespace attend
