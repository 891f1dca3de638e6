#include "attend/search/shortlist.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/version.h"
#include "attend/data/lexical_model.h"
#include "attend/data/tokenizer.h"
#include "attend/io/model_directory.h"
#include "attend/io/safetensors.h"
#include "attend/models/hostile_text.h"

namespace attend {
namespace {

constexpr const char* kVersionKey = "attend_version";
constexpr const char* kOffsets = "offsets";
constexpr const char* kCandidates = "candidates";
constexpr const char* kFrequent = "frequent";

/// How often each target token is in the corpus.
std::vector<int64_t> count_targets(const ForEachPair& pairs, int64_t vocabulary) {
  std::vector<int64_t> counts(static_cast<std::size_t>(vocabulary));
  pairs([&](std::span<const int32_t>, std::span<const int32_t> target) {
    for (const int32_t token : target) ++counts[static_cast<std::size_t>(token)];
  });
  return counts;
}

/// Those that are there, most often first (ties: the lower id).
std::vector<int32_t> most_frequent(const std::vector<int64_t>& counts, int64_t most) {
  std::vector<int32_t> tokens(counts.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto count_of = [&](int32_t token) { return counts[static_cast<std::size_t>(token)]; };
  std::ranges::stable_sort(tokens, std::greater<>(), count_of);
  const auto unseen = std::ranges::find(tokens, 0, count_of);
  tokens.resize(
      std::min(static_cast<std::size_t>(unseen - tokens.begin()), static_cast<std::size_t>(most)));
  return tokens;
}

ForEachPair pairs_of(const TokenStore& store) {
  return [&store](const UsePair& use) {
    constexpr int64_t kPairsAtOnce = 4096;
    std::vector<int32_t> source, target;
    for (int64_t begin = 0; begin < store.size().pairs; begin += kPairsAtOnce) {
      for (const StoredPair& pair :
           store.pairs(begin, std::min(begin + kPairsAtOnce, store.size().pairs))) {
        source.clear();
        target.clear();
        store.read(pair, source, target);
        use(source, target);
      }
    }
  };
}

void check_fingerprint(const SafetensorsFile& file, const char* key, const Tokenizer& tokenizer) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) {
    fail("{} is no shortlist: its metadata has no {}; make one with attend shortlist",
         file.path().string(), key);
  }
  if (found->second == tokenizer.fingerprint()) return;
  fail(
      "{} was made for the {} {}, but the model's is {}: they do not belong together; make one for "
      "this model with attend shortlist",
      file.path().string(), key, shown(found->second), tokenizer.fingerprint());
}

void check_offsets(const SafetensorsFile& file, const std::vector<int32_t>& offsets,
                   int64_t vocabulary, std::size_t candidates) {
  if (std::ssize(offsets) != vocabulary + 1) {
    fail("{}: tensor {} has {} numbers; expected one more than the source vocabulary's {} tokens",
         file.path().string(), kOffsets, offsets.size(), vocabulary);
  }
  if (offsets.front() != 0 || std::cmp_not_equal(offsets.back(), candidates) ||
      !std::ranges::is_sorted(offsets)) {
    fail("{}: tensor {} does not rise from 0 to the {} candidates", file.path().string(), kOffsets,
         candidates);
  }
}

void check_ids(const std::vector<int32_t>& ids, int64_t vocabulary, const std::string& where) {
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocabulary) {
      fail("{}: found the token {}; the target vocabulary has {}", where, id, vocabulary);
    }
  }
}

}  // namespace

void ShortlistOptions::validate() const {
  constexpr int64_t kMostTokens = 100'000;
  for (const auto& [name, value] : {std::pair{"candidates", candidates}, {"frequent", frequent}}) {
    if (value < 1 || value > kMostTokens) {
      fail_usage("{}: found {}, expected from 1 to {}", name, value, kMostTokens);
    }
  }
  LexicalModelOptions{.iterations = iterations}.validate();
}

Shortlist::Shortlist(const std::vector<std::vector<int32_t>>& candidates,
                     std::vector<int32_t> frequent, int64_t target_vocabulary)
    : offsets_(1, 0), frequent_(std::move(frequent)), target_vocabulary_(target_vocabulary) {
  for (const std::vector<int32_t>& each : candidates) {
    candidates_.insert(candidates_.end(), each.begin(), each.end());
    if (std::cmp_greater(candidates_.size(), std::numeric_limits<int32_t>::max())) {
      fail("a shortlist has more than 2^31 candidates; ask for fewer for each source token");
    }
    offsets_.push_back(static_cast<int32_t>(candidates_.size()));
  }
  check_ids(candidates_, target_vocabulary_, "candidates of a shortlist");
  check_ids(frequent_, target_vocabulary_, "frequent tokens of a shortlist");
}

Shortlist Shortlist::learn(const ParallelCorpus& corpus, const Tokenizer& source,
                           const Tokenizer& target, const ShortlistOptions& options) {
  options.validate();
  const ForEachPair pairs = pairs_of(corpus.store());
  const LexicalModel model =
      train_lexical_model(pairs, {.source_vocabulary = source.vocabulary_size(),
                                  .iterations = options.iterations,
                                  .most_targets = options.candidates});
  const bool joint = source.fingerprint() == target.fingerprint();
  std::vector<std::vector<int32_t>> candidates;
  for (const std::vector<LexicalTarget>& targets : model.targets) {
    std::vector<int32_t>& of_token = candidates.emplace_back();
    for (const LexicalTarget& each : targets) of_token.push_back(each.token);
    const auto token = static_cast<int32_t>(candidates.size() - 1);
    if (!joint || std::ranges::find(of_token, token) != of_token.end()) continue;
    if (std::ssize(of_token) == options.candidates) of_token.pop_back();
    of_token.push_back(token);
  }
  return {candidates,
          most_frequent(count_targets(pairs, target.vocabulary_size()), options.frequent),
          target.vocabulary_size()};
}

Shortlist Shortlist::load(const Path& path, const Tokenizer& source, const Tokenizer& target) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  check_fingerprint(file, kSourceTokenizerKey, source);
  check_fingerprint(file, kTargetTokenizerKey, target);
  Shortlist made;
  made.target_vocabulary_ = target.vocabulary_size();
  made.offsets_ = file.read_integers(kOffsets);
  made.candidates_ = file.read_integers(kCandidates);
  made.frequent_ = file.read_integers(kFrequent);
  check_offsets(file, made.offsets_, source.vocabulary_size(), made.candidates_.size());
  for (const auto& [name, ids] :
       {std::pair{kCandidates, &made.candidates_}, {kFrequent, &made.frequent_}}) {
    check_ids(*ids, made.target_vocabulary_, fmt::format("{}: tensor {}", path.string(), name));
  }
  return made;
}

void Shortlist::save(const Path& path, const Tokenizer& source, const Tokenizer& target) const {
  write_safetensors(path, {},
                    {{kSourceTokenizerKey, source.fingerprint()},
                     {kTargetTokenizerKey, target.fingerprint()},
                     {kVersionKey, std::string(kVersion)}},
                    {{kOffsets, offsets_}, {kCandidates, candidates_}, {kFrequent, frequent_}});
}

std::span<const int32_t> Shortlist::candidates(int32_t source) const {
  if (source < 0 || source >= source_vocabulary()) return {};
  const auto at = static_cast<std::size_t>(source);
  const auto begin = static_cast<std::size_t>(offsets_[at]);
  return std::span(candidates_).subspan(begin, static_cast<std::size_t>(offsets_[at + 1]) - begin);
}

std::vector<int32_t> Shortlist::tokens_for(const SearchRequest& request, int32_t eos) const {
  std::vector<uint64_t> chosen(static_cast<std::size_t>(target_vocabulary_) / 64 + 1);  // bits
  const auto add = [&](std::span<const int32_t> tokens) {
    for (const int32_t token : tokens) {
      if (token < 0 || token >= target_vocabulary_) continue;  // the search says what is wrong
      chosen[static_cast<std::size_t>(token) / 64] |= uint64_t{1} << (token % 64);
    }
  };
  add({&eos, 1});
  add(frequent_);
  for (const int32_t token : request.source) add(candidates(token));
  add(request.constraints.prefix);
  for (const std::vector<int32_t>& phrase : request.constraints.required) add(phrase);

  std::vector<int32_t> tokens;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    for (uint64_t bits = chosen[i]; bits != 0; bits &= bits - 1) {
      tokens.push_back(static_cast<int32_t>(i * 64) + std::countr_zero(bits));
    }
  }
  return tokens;
}

}  // namespace attend
