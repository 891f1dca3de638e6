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

void append_pair(const ParallelCorpus& corpus, const StoredPair& pair, Lane& lane) {
  const std::size_t begin = lane.target_output.size();
  corpus.store().read(pair, lane.source.tokens, lane.target_output);
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

}  // namespace

std::vector<Lane> make_lanes(const ParallelCorpus& corpus, std::span<const StoredPair> pairs,
                             int64_t lanes, int64_t lane_tokens) {
  int64_t source_tokens = 0, target_tokens = 0;
  for (const StoredPair& pair : pairs) {
    source_tokens += source_cost(pair);
    target_tokens += target_cost(pair);
  }
  const int64_t longer_side = std::max(source_tokens, target_tokens);
  const int64_t wanted = std::max(lanes, (longer_side + lane_tokens - 1) / lane_tokens);
  const int64_t count = std::min(wanted, std::ssize(pairs));

  std::vector<Lane> made(count);
  const int64_t total = std::max<int64_t>(1, source_tokens + target_tokens);
  int64_t before = 0;  // the cost of the pairs so far
  int64_t lane = 0;
  for (int64_t i = 0; i < std::ssize(pairs); ++i) {
    const int64_t cost = source_cost(pairs[i]) + target_cost(pairs[i]);
    // A pair belongs to the lane that its middle falls into, but no lane stays empty.
    const int64_t middle_lane = (2 * before + cost) * count / (2 * total);
    const bool filled = !made[lane].pair_ids.empty();
    const bool needed = std::ssize(pairs) - i <= count - 1 - lane;
    if (filled && (middle_lane > lane || needed)) ++lane;
    append_pair(corpus, pairs[i], made[lane]);
    before += cost;
  }
  return made;
}

}  // namespace attend
