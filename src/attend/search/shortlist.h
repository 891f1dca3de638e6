#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attend/base/files.h"
#include "attend/data/corpus.h"
#include "attend/search/hypothesis.h"

namespace attend {

class Tokenizer;  // data/tokenizer.h

/// How a shortlist is learned.
struct ShortlistOptions {
  int64_t candidates = 100;  ///< target tokens for each source token
  int64_t frequent = 100;    ///< target tokens for every sentence
  int64_t iterations = 5;    ///< of IBM Model 1, see train_lexical_model
  void validate() const;     ///< throws UsageError naming the option
};

/// Which target tokens a sentence's translation may be made of, so that the output projection need
/// not score the others (Jean et al. 2015, §3.2.2): for each of its source tokens those that it is
/// most often translated by, and those that are frequent anyway. The list is a sentence's own and
/// no batch's: contract 6 holds with it.
class Shortlist {
 public:
  /// candidates: of each source token, best first. Throws Error for an id that is no target token.
  Shortlist(const std::vector<std::vector<int32_t>>& candidates, std::vector<int32_t> frequent,
            int64_t target_vocabulary);

  /// Learns it from a corpus of the model's tokens. With one vocabulary for both sides, a source
  /// token is a candidate for itself, so that what was never seen in the corpus can be copied.
  static Shortlist learn(const ParallelCorpus& corpus, const Tokenizer& source,
                         const Tokenizer& target, const ShortlistOptions& options);

  /// Reads a file that save() wrote. Throws Error where it is damaged or was made for other
  /// tokenizers (contracts 19 and 21).
  static Shortlist load(const Path& path, const Tokenizer& source, const Tokenizer& target);
  /// Writes it, with the fingerprints of the tokenizers whose ids it has.
  void save(const Path& path, const Tokenizer& source, const Tokenizer& target) const;

  /// The tokens for one sentence, in order: with its constraints' and the end of sentence.
  std::vector<int32_t> tokens_for(const SearchRequest& request, int32_t eos) const;

  std::span<const int32_t> candidates(int32_t source) const;
  std::span<const int32_t> frequent() const { return frequent_; }
  int64_t source_vocabulary() const { return std::ssize(offsets_) - 1; }
  int64_t candidate_count() const { return std::ssize(candidates_); }
  int64_t target_vocabulary() const { return target_vocabulary_; }

 private:
  Shortlist() = default;

  std::vector<int32_t> offsets_;     ///< [source vocabulary + 1], of each source token's first
  std::vector<int32_t> candidates_;  ///< end to end
  std::vector<int32_t> frequent_;
  int64_t target_vocabulary_ = 0;
};

/// Its name in a model directory, where it is written unless another is asked for.
inline constexpr const char* kShortlistFile = "shortlist.safetensors";

}  // namespace attend
