#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attend/search/hypothesis.h"
#include "attend/search/options.h"

namespace attend {

/// Which tokens a hypothesis may not put out next, and which count for less. Probabilities stay
/// those of the whole vocabulary: what is refused is passed over.
class TokenRules {
 public:
  /// `tokens` must outlive this.
  TokenRules(const SearchTokens& tokens, const SearchOptions& options);

  /// Where it is not SearchOptions::min_length, since the model cannot make that many tokens.
  void set_min_length(int64_t tokens) { min_length_ = tokens; }

  /// Whether look_at needs the hypothesis's tokens; else their number does.
  bool need_history() const;
  /// How many tokens can be refused or count for less after `length` tokens, at most.
  int64_t most_affected(int64_t length) const;

  /// What follows is about the next token of a hypothesis of `length` tokens, which are `history`
  /// where need_history().
  void look_at(int64_t length, std::span<const int32_t> history);
  bool refuses(int32_t token) const;
  /// log_prob, times the repetition penalty where the hypothesis has the token already. That is
  /// Keskar et al. 2019 with normalised log-probabilities for scores, which no constant can shift.
  double weigh(int32_t token, float log_prob) const;

 private:
  void block_repeated_ngrams(std::span<const int32_t> history);
  void block_sequences(std::span<const int32_t> history);

  const SearchTokens* tokens_;
  int64_t min_length_;
  int64_t ngram_size_;
  double repetition_penalty_;
  bool may_end_ = true;
  std::vector<int32_t> blocked_;
  std::vector<int32_t> seen_;  ///< sorted
};

}  // namespace attend
