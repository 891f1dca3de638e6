#pragma once

#include <cstdint>
#include <span>

#include "attend/search/options.h"

namespace attend {

/// log P / ((5 + |Y|) / 6)^α (Wu et al. 2016, equation 14). |Y| counts the end of sentence.
double length_penalized(double log_prob, int64_t length, double alpha);
/// log P with the length penalty that the options ask for.
double length_penalized(double log_prob, int64_t length, const SearchOptions& options);

/// β Σ_i log min(Σ_j p_ij, 1) (Wu et al. 2016, equation 14): what a finished output is marked down
/// by for source tokens i that it did not attend to. coverage: Σ_j p_ij of each source token, over
/// the steps j; one of zero counts as 1e-9. Never above zero, so that a bound on the score without
/// it is one with it.
double coverage_penalty(std::span<const float> coverage, double beta);

}  // namespace attend
