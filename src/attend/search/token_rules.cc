#include "attend/search/token_rules.h"

#include <algorithm>

namespace attend {
namespace {

bool contains(std::span<const int32_t> tokens, int32_t token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

bool ends_with(std::span<const int32_t> history, std::span<const int32_t> tail) {
  return history.size() >= tail.size() && std::ranges::equal(history.last(tail.size()), tail);
}

}  // namespace

TokenRules::TokenRules(const SearchTokens& tokens, const SearchOptions& options)
    : tokens_(&tokens),
      min_length_(options.min_length),
      ngram_size_(options.no_repeat_ngram_size),
      repetition_penalty_(options.repetition_penalty) {}

bool TokenRules::need_history() const {
  return ngram_size_ > 0 || repetition_penalty_ > 1 || !tokens_->suppressed_sequences.empty();
}

int64_t TokenRules::most_affected(int64_t length) const {
  int64_t most = 1 + std::ssize(tokens_->suppressed) + std::ssize(tokens_->suppressed_sequences);
  if (length < min_length_) ++most;
  if (ngram_size_ > 0) most += length;
  if (repetition_penalty_ > 1) most += length;
  return most;
}

void TokenRules::look_at(int64_t length, std::span<const int32_t> history) {
  may_end_ = length >= min_length_;
  if (!need_history()) return;
  blocked_.clear();
  if (ngram_size_ > 0) block_repeated_ngrams(history);
  block_sequences(history);
  if (repetition_penalty_ > 1) {
    seen_.assign(history.begin(), history.end());
    std::sort(seen_.begin(), seen_.end());
  }
}

void TokenRules::block_repeated_ngrams(std::span<const int32_t> history) {
  const auto before = static_cast<std::size_t>(ngram_size_ - 1);
  if (history.size() < before) return;
  const auto tail = history.last(before);
  for (std::size_t i = 0; i + before < history.size(); ++i) {
    if (std::ranges::equal(history.subspan(i, before), tail)) {
      blocked_.push_back(history[i + before]);
    }
  }
}

void TokenRules::block_sequences(std::span<const int32_t> history) {
  for (const std::vector<int32_t>& sequence : tokens_->suppressed_sequences) {
    if (ends_with(history, std::span(sequence).first(sequence.size() - 1))) {
      blocked_.push_back(sequence.back());
    }
  }
}

bool TokenRules::refuses(int32_t token) const {
  if (token == tokens_->eos) return !may_end_;
  return token == tokens_->bos || contains(tokens_->suppressed, token) || contains(blocked_, token);
}

double TokenRules::weigh(int32_t token, float log_prob) const {
  const auto value = static_cast<double>(log_prob);
  if (!std::binary_search(seen_.begin(), seen_.end(), token)) return value;
  return repetition_penalty_ * value;
}

}  // namespace attend
