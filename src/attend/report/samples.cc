#include "attend/report/samples.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "attend/base/random.h"
#include "attend/data/utf8.h"

namespace attend {

std::string_view name_of(SampleKind kind) {
  switch (kind) {
    case SampleKind::kRandom:
      return "random";
    case SampleKind::kBest:
      return "best";
    case SampleKind::kWorst:
      return "worst";
  }
  return "?";
}

std::vector<Sample> choose_samples(const std::vector<std::string>& sources,
                                   const std::vector<double>& scores, int64_t count,
                                   uint64_t seed) {
  std::vector<std::size_t> lines;
  std::unordered_set<std::string_view> seen;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (!is_blank(sources[i]) && seen.insert(sources[i]).second) lines.push_back(i);
  }
  const std::size_t all = std::min(static_cast<std::size_t>(count), lines.size());
  const std::size_t third = all / 3;
  std::stable_sort(lines.begin(), lines.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  std::vector<Sample> best, worst, samples;
  for (std::size_t i = 0; i < third; ++i) {
    best.push_back({lines[i], SampleKind::kBest});
    worst.push_back({lines[lines.size() - 1 - i], SampleKind::kWorst});
  }
  std::vector<std::size_t> rest(lines.begin() + std::ssize(best), lines.end() - std::ssize(worst));
  std::sort(rest.begin(), rest.end());
  RandomGenerator random(seed);
  for (std::size_t i = 0; i < all - 2 * third; ++i) {
    std::swap(rest[i], rest[i + random.uniform_index(rest.size() - i)]);
    samples.push_back({rest[i], SampleKind::kRandom});
  }
  samples.insert(samples.end(), best.begin(), best.end());
  samples.insert(samples.end(), worst.begin(), worst.end());
  return samples;
}

}  // namespace attend
