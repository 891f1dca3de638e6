#include "attend/search/options.h"

#include <cmath>

#include "attend/base/error.h"

namespace attend {
namespace {

constexpr int64_t kMost = int64_t{1} << 30;  // so that products of options have room
constexpr int64_t kMostHypotheses = 1000;    // of a sentence, each with its keys and values

}  // namespace

void SearchOptions::validate() const {
  const auto check = [](const char* option, int64_t value, int64_t least, int64_t most = kMost) {
    if (value < least) {
      fail_usage("{}: found {}, expected a whole number of at least {}", option, value, least);
    }
    if (value > most) {
      fail_usage("{}: found {}, expected a whole number of at most {}", option, value, most);
    }
  };
  check("beam_size", beam_size, 1, kMostHypotheses);
  check("max_extra_length", max_extra_length, 0);
  check("n_best", n_best, 1);
  check("batch_tokens", batch_tokens, 1);
  if (n_best > beam_size) {
    fail_usage("n_best: found {}, expected at most beam_size, which is {}; raise beam_size", n_best,
               beam_size);
  }
  if (!std::isfinite(length_penalty) || length_penalty < 0) {
    fail_usage("length_penalty: found {}, expected a number of at least 0", length_penalty);
  }
}

}  // namespace attend
