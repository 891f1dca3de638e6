#include "attend/data/pair_tokenizer.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "attend/base/error.h"
#include "attend/data/utf8.h"

namespace attend {
namespace {

void require_token(int32_t id, std::string_view name, std::string_view side) {
  if (id < 0) {
    fail(
        "the {} tokenizer has no {} token; train one with attend, or with SentencePiece's --bos_id "
        "and --eos_id",
        side, name);
  }
}

std::string_view as_bytes(std::span<const int32_t> numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()};
}

/// Of a pair: its lengths, then its tokens.
uint64_t fingerprint_of(std::span<const int32_t> source, std::span<const int32_t> target) {
  const std::array lengths = {static_cast<int32_t>(source.size()),
                              static_cast<int32_t>(target.size())};
  Fingerprint fingerprint;
  for (const std::span<const int32_t> each : {std::span<const int32_t>(lengths), source, target}) {
    fingerprint.add(as_bytes(each));
  }
  return fingerprint.value();
}

}  // namespace

PairTokenizer::PairTokenizer(const CorpusOptions& options, const Tokenizer& source,
                             const Tokenizer& target)
    : options_(options), source_(source), target_(target) {
  require_token(source.eos_id(), "EOS", "source");
  require_token(target.eos_id(), "EOS", "target");
  require_token(target.bos_id(), "BOS", "target");
}

Vocabularies PairTokenizer::vocabularies() const {
  return {source_.vocabulary_size(), target_.vocabulary_size()};
}

TokenizedPairs PairTokenizer::operator()(const std::vector<TextPair>& pairs) const {
  TokenizedPairs made;
  for (const TextPair& pair : pairs) {
    ++made.report.pairs_read;
    add(pair, made);
  }
  return made;
}

void PairTokenizer::add(const TextPair& pair, TokenizedPairs& made) const {
  if (!valid_utf8(pair.source) || !valid_utf8(pair.target)) {
    ++made.report.bad_utf8;
  } else if (is_blank(pair.source) || is_blank(pair.target)) {
    ++made.report.empty;
  } else if (surely_too_long(pair.source, source_) || surely_too_long(pair.target, target_)) {
    ++made.report.too_long;
  } else {
    add_tokens(source_.encode(pair.source), target_.encode(pair.target), made);
  }
}

void PairTokenizer::add_tokens(const std::vector<int32_t>& source,
                               const std::vector<int32_t>& target, TokenizedPairs& made) const {
  const auto shorter = static_cast<double>(std::min(source.size(), target.size()));
  const auto longer = static_cast<double>(std::max(source.size(), target.size()));
  if (options_.max_length > 0 && longer > static_cast<double>(options_.max_length)) {
    ++made.report.too_long;
  } else if (shorter == 0) {  // a tokenizer that normalises may leave nothing
    ++made.report.empty;
  } else if (options_.max_length_ratio > 0 && longer > options_.max_length_ratio * shorter) {
    ++made.report.length_ratio;
  } else {
    ++made.report.pairs_kept;
    made.tokens.add(source, target, vocabularies());
    made.source_tokens += std::ssize(source);
    made.target_tokens += std::ssize(target);
    made.fingerprint.add(fingerprint_of(source, target));
  }
}

/// So many bytes that max_length tokens cannot hold them, even where a normaliser shortens the
/// text: not worth the memory of tokenizing it.
bool PairTokenizer::surely_too_long(std::string_view text, const Tokenizer& tokenizer) const {
  constexpr int64_t kShortening = 4;
  return options_.max_length > 0 &&
         static_cast<int64_t>(text.size()) / tokenizer.longest_piece() / kShortening >
             options_.max_length;
}

}  // namespace attend
