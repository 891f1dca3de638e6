#pragma once

#include <cstdint>

#include <nlohmann/json.hpp>

#include "attend/train/run_history.h"

namespace attend {

/// A number of six digits, or null where it is not finite: what a page needs of it.
nlohmann::ordered_json rounded(double value);

/// The training figures as columns, of `most` points at most: where there are more, every `merged`
/// neighbours are one, as if the run had logged so much less often. Losses, norms and logarithms of
/// perplexity are means, the speed is that of all their tokens, the rest is the last one's.
nlohmann::ordered_json training_series(const std::vector<RunHistory::Training>& training,
                                       int64_t most);

/// The validations as columns. Of more than `most`, one in so many is kept, and the best.
nlohmann::ordered_json validation_series(const std::vector<RunHistory::Validation>& validations,
                                         int64_t most);

}  // namespace attend
