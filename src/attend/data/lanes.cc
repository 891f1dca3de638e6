#include <algorithm>
#include <cstddef>

#include "attend/data/batches.h"

namespace attend {
namespace {

/// Tokens of a pair's sides, EOS counted.
int64_t source_cost(const StoredPair& pair) { return pair.source_length + 1; }
int64_t target_cost(const StoredPair& pair) { return pair.target_length + 1; }

void end_sequence(Sequences& sequences) {
  sequences.offsets.push_back(static_cast<int64_t>(sequences.tokens.size()));
}

void append_pair(const ParallelCorpus& corpus, const ReadPair& read, const StoredPair& pair,
                 Lane& lane) {
  const std::size_t begin = lane.target_output.size();
  if (read) {
    read(pair, lane.source.tokens, lane.target_output);
  } else {
    corpus.store().read(pair, lane.source.tokens, lane.target_output);
  }
  lane.source.tokens.push_back(corpus.source_eos());
  end_sequence(lane.source);
  lane.target_input.tokens.push_back(corpus.target_bos());
  lane.target_input.tokens.insert(lane.target_input.tokens.end(),
                                  lane.target_output.begin() + static_cast<std::ptrdiff_t>(begin),
                                  lane.target_output.end());
  end_sequence(lane.target_input);
  lane.target_output.push_back(corpus.target_eos());
  lane.pair_ids.push_back(pair.pair);
}

/// Cuts into `count` runs of nearly equal cost, none of them empty.
std::vector<std::span<const StoredPair>> cut_evenly(std::span<const StoredPair> pairs,
                                                    int64_t count) {
  int64_t total = 0;
  for (const StoredPair& pair : pairs) total += source_cost(pair) + target_cost(pair);
  std::vector<std::span<const StoredPair>> cuts;
  int64_t before = 0;  // the cost of the pairs so far
  std::size_t begin = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const int64_t cost = source_cost(pairs[i]) + target_cost(pairs[i]);
    // A pair belongs to the lane that its middle falls into, but no lane stays empty.
    const int64_t middle_lane = (2 * before + cost) * count / (2 * total);
    const int64_t lane = std::ssize(cuts);
    const bool needed = std::ssize(pairs) - static_cast<int64_t>(i) <= count - 1 - lane;
    if (i > begin && (middle_lane > lane || needed)) {
      cuts.push_back(pairs.subspan(begin, i - begin));
      begin = i;
    }
    before += cost;
  }
  if (begin < pairs.size()) cuts.push_back(pairs.subspan(begin));
  return cuts;
}

int64_t longer_side(std::span<const StoredPair> pairs) {
  int64_t source_tokens = 0, target_tokens = 0;
  for (const StoredPair& pair : pairs) {
    source_tokens += source_cost(pair);
    target_tokens += target_cost(pair);
  }
  return std::max(source_tokens, target_tokens);
}

std::vector<std::span<const StoredPair>> cut_lanes(std::span<const StoredPair> pairs, int64_t lanes,
                                                   int64_t lane_tokens) {
  const int64_t round_tokens = lanes * lane_tokens;
  const int64_t rounds =
      std::max<int64_t>(1, (longer_side(pairs) + round_tokens - 1) / round_tokens);
  for (int64_t count = rounds * lanes;; count += lanes) {
    auto cuts = cut_evenly(pairs, std::min(count, std::ssize(pairs)));
    const bool all_fit = std::all_of(cuts.begin(), cuts.end(), [&](const auto& cut) {
      return cut.size() == 1 || longer_side(cut) <= lane_tokens;
    });
    if (all_fit || count >= std::ssize(pairs)) return cuts;
  }
}

}  // namespace

std::vector<Lane> make_lanes(const ParallelCorpus& corpus, std::span<const StoredPair> pairs,
                             int64_t lanes, int64_t lane_tokens, const ReadPair& read) {
  std::vector<Lane> made;
  for (const auto& cut : cut_lanes(pairs, lanes, lane_tokens)) {
    Lane& lane = made.emplace_back();
    for (const StoredPair& pair : cut) append_pair(corpus, read, pair, lane);
  }
  return made;
}

}  // namespace attend
