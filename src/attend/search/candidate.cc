#include "attend/search/candidate.h"

#include <algorithm>
#include <tuple>

namespace attend {

bool better(const Candidate& a, const Candidate& b) {
  if (a.rank_score != b.rank_score) return a.rank_score > b.rank_score;
  return std::tuple(a.parent, a.token) < std::tuple(b.parent, b.token);
}

void select_best(std::vector<Candidate>& candidates, int64_t beam_size, int32_t eos,
                 Selection& selection) {
  const int64_t width = std::min(2 * beam_size, std::ssize(candidates));
  std::partial_sort(candidates.begin(), candidates.begin() + width, candidates.end(), better);
  for (int64_t rank = 0; rank < width && std::ssize(selection.going_on) < beam_size; ++rank) {
    const Candidate& candidate = candidates[static_cast<std::size_t>(rank)];
    if (candidate.token != eos) {
      selection.going_on.push_back(candidate);
    } else if (rank < beam_size) {
      selection.ending.push_back(candidate);
      if (beam_size == 1) return;
    }
  }
}

void best_tokens(std::span<const float> log_probs, std::size_t count,
                 std::vector<int32_t>& tokens) {
  const auto likelier = [&](int32_t a, int32_t b) {
    const float first = log_probs[static_cast<std::size_t>(a)];
    const float second = log_probs[static_cast<std::size_t>(b)];
    return first != second ? first > second : a < b;
  };
  tokens.clear();
  count = std::min(count, log_probs.size());
  // A heap whose front is the worst of the best so far: most tokens are compared with it alone.
  for (std::size_t i = 0; i < log_probs.size() && count > 0; ++i) {
    const auto token = static_cast<int32_t>(i);
    if (tokens.size() == count) {
      if (!likelier(token, tokens.front())) continue;
      std::pop_heap(tokens.begin(), tokens.end(), likelier);
      tokens.back() = token;
    } else {
      tokens.push_back(token);
    }
    std::push_heap(tokens.begin(), tokens.end(), likelier);
  }
  std::sort_heap(tokens.begin(), tokens.end(), likelier);
}

}  // namespace attend
