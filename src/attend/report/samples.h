#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/data/parallel_text.h"

namespace attend {

/// Why a sentence is shown.
enum class SampleKind { kRandom, kBest, kWorst };
std::string_view name_of(SampleKind kind);  ///< "random", "best", "worst"

struct Sample {
  std::size_t line = 0;  ///< of the text, from 0
  SampleKind kind = SampleKind::kRandom;
};

/// Chooses `count` sentences or as many as there are: a third with the best scores, a third with
/// the worst, and the rest by chance, which `seed` decides; in the order random, best, worst. Blank
/// lines and sentences that occurred before are not chosen; of equals, the first is.
/// scores: one for each line, more is better.
std::vector<Sample> choose_samples(const std::vector<std::string>& sources,
                                   const std::vector<double>& scores, int64_t count, uint64_t seed);

}  // namespace attend
