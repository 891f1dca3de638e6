#include "attend/search/required_phrases.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <utility>

#include "attend/base/error.h"

namespace attend {
namespace {

bool ends_with(std::span<const int32_t> tokens, std::span<const int32_t> tail) {
  return tokens.size() >= tail.size() && std::ranges::equal(tokens.last(tail.size()), tail);
}

/// How much of a phrase's beginning, but not all of it, the tokens end with, at most.
std::size_t begun(std::span<const int32_t> phrase, std::span<const int32_t> tokens) {
  std::size_t length = std::min(phrase.size() - 1, tokens.size());
  while (!ends_with(tokens, phrase.first(length))) --length;
  return length;
}

/// Places of the beam for each bank of `sizes`; the last bank has all required tokens.
std::vector<int64_t> places_of_banks(const std::vector<int64_t>& sizes, int64_t beam_size) {
  const int64_t banks = std::ssize(sizes);
  std::vector<int64_t> places(sizes.size(), beam_size / banks);
  places.back() += beam_size % banks;
  int64_t unused = 0;
  for (std::size_t bank = 0; bank < sizes.size(); ++bank) {
    const int64_t more = std::max<int64_t>(places[bank] - sizes[bank], 0);
    places[bank] -= more;
    unused += more;
  }
  for (std::size_t bank = sizes.size(); bank-- > 0 && unused > 0;) {
    const int64_t more = std::min(sizes[bank] - places[bank], unused);
    places[bank] += more;
    unused -= more;
  }
  return places;
}

}  // namespace

RequiredPhrases::RequiredPhrases(const std::vector<std::vector<int32_t>>& phrases) {
  std::vector<std::vector<int32_t>> longest_first = phrases;
  std::ranges::stable_sort(longest_first, std::ranges::greater(), &std::vector<int32_t>::size);
  for (std::vector<int32_t>& phrase : longest_first) {
    const auto holds_it = [&phrase](const std::vector<int32_t>& longer) {
      return std::search(longer.begin(), longer.end(), phrase.begin(), phrase.end()) !=
             longer.end();
    };
    if (phrase.empty() || std::ranges::any_of(phrases_, holds_it)) continue;
    total_ += std::ssize(phrase);
    phrases_.push_back(std::move(phrase));
  }
  if (phrases_.size() > kMost) {
    fail("{} required words or phrases for one sentence; expected at most {}", phrases_.size(),
         kMost);
  }
}

uint64_t RequiredPhrases::all_met() const {
  return phrases_.empty() ? 0 : ~uint64_t{0} >> (kMost - phrases_.size());
}

uint64_t RequiredPhrases::met_after(uint64_t met, std::span<const int32_t> tokens) const {
  for (std::size_t i = 0; i < phrases_.size(); ++i) {
    if (ends_with(tokens, phrases_[i])) met |= uint64_t{1} << i;
  }
  return met;
}

int64_t RequiredPhrases::needed(uint64_t met, std::span<const int32_t> tokens) const {
  int64_t needed = 0, most_begun = 0;
  for (std::size_t i = 0; i < phrases_.size(); ++i) {
    if (is_met(met, i)) continue;
    needed += std::ssize(phrases_[i]);
    most_begun = std::max(most_begun, static_cast<int64_t>(begun(phrases_[i], tokens)));
  }
  return needed - most_begun;
}

void RequiredPhrases::next_tokens(uint64_t met, std::span<const int32_t> tokens,
                                  std::vector<int32_t>& next) const {
  next.clear();
  for (std::size_t i = 0; i < phrases_.size(); ++i) {
    if (is_met(met, i)) continue;
    next.push_back(phrases_[i].front());
    next.push_back(phrases_[i][begun(phrases_[i], tokens)]);
  }
  std::sort(next.begin(), next.end());
  next.erase(std::unique(next.begin(), next.end()), next.end());
}

void allocate_beam(std::vector<BankedCandidate>& candidates, int64_t total, int64_t beam_size,
                   int32_t eos, Selection& selection) {
  std::sort(candidates.begin(), candidates.end(),
            [](const BankedCandidate& a, const BankedCandidate& b) {
              return better(a.candidate, b.candidate);
            });
  const auto bank_of = [total](const BankedCandidate& each) {
    return static_cast<std::size_t>(total - each.needed);
  };
  std::vector<int64_t> sizes(static_cast<std::size_t>(total) + 1);
  for (const BankedCandidate& each : candidates) {
    if (each.candidate.token != eos) ++sizes[bank_of(each)];
  }
  std::vector<int64_t> places = places_of_banks(sizes, beam_size);
  // An end is among as many as the last bank could have places.
  const int64_t elsewhere = std::accumulate(places.begin(), places.end() - 1, int64_t{0});
  int64_t ends = std::max<int64_t>(beam_size - elsewhere, 1);
  for (const BankedCandidate& each : candidates) {
    const std::size_t bank = bank_of(each);
    const bool whole = each.needed == 0;
    if (each.candidate.token == eos) {
      if (whole && ends > 0) selection.ending.push_back(each.candidate);
    } else if (places[bank] > 0) {
      --places[bank];
      selection.going_on.push_back(each.candidate);
    }
    if (whole) --ends;
  }
}

}  // namespace attend
