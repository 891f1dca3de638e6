#include "attend/search/options.h"

#include <cmath>

#include "attend/base/error.h"

namespace attend {

void SearchOptions::validate() const {
  const auto at_least = [](const char* option, int64_t value, int64_t least) {
    if (value < least) {
      fail_usage("{}: found {}, expected a whole number of at least {}", option, value, least);
    }
  };
  at_least("beam_size", beam_size, 1);
  at_least("max_extra_length", max_extra_length, 0);
  at_least("n_best", n_best, 1);
  at_least("batch_tokens", batch_tokens, 1);
  if (n_best > beam_size) {
    fail_usage("n_best: found {}, expected at most beam_size, which is {}; raise beam_size", n_best,
               beam_size);
  }
  if (!std::isfinite(length_penalty) || length_penalty < 0) {
    fail_usage("length_penalty: found {}, expected a number of at least 0", length_penalty);
  }
}

}  // namespace attend
