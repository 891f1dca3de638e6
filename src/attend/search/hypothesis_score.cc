#include "attend/search/hypothesis_score.h"

#include <algorithm>
#include <cmath>

namespace attend {

double length_penalized(double log_prob, int64_t length, double alpha) {
  return log_prob / std::pow((5 + static_cast<double>(length)) / 6, alpha);
}

double length_penalized(double log_prob, int64_t length, const SearchOptions& options) {
  switch (options.length_penalty_kind) {
    case LengthPenalty::kGnmt:
      return length_penalized(log_prob, length, options.length_penalty);
    case LengthPenalty::kAverage:
      return log_prob / static_cast<double>(length);
    case LengthPenalty::kNone:
      break;
  }
  return log_prob;
}

double coverage_penalty(std::span<const float> coverage, double beta) {
  constexpr double kLeast = 1e-9;
  double sum = 0;
  for (const float attended : coverage) {
    sum += std::log(std::clamp(static_cast<double>(attended), kLeast, 1.0));
  }
  return beta * sum;
}

}  // namespace attend
