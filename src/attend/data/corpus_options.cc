#include "attend/data/corpus_options.h"

#include "attend/base/error.h"

namespace attend {

void CorpusOptions::validate() const {
  if (corpora.empty()) fail_usage("there is no training data; expected at least one corpus");
  for (const ParallelFiles& files : corpora) {
    constexpr double kLeast = ParallelFiles::kLeastWeight, kLargest = ParallelFiles::kLargestWeight;
    if (!(files.weight >= kLeast && files.weight <= kLargest)) {
      fail_usage("the weight of {} is {}; expected {} to {}", files.name(), files.weight, kLeast,
                 kLargest);
    }
  }
  if (max_length < 0) {
    fail_usage("max_length is {}; expected a number of tokens, or 0 for no limit", max_length);
  }
  if (!(max_length_ratio == 0 || max_length_ratio >= 1)) {
    fail_usage("max_length_ratio is {}; expected at least 1, or 0 for no limit", max_length_ratio);
  }
  if (threads < 0) fail_usage("threads is {}; expected a number, or 0 for one a core", threads);
  if (most_pairs < 0 || (most_pairs > 0 && !cache.empty())) {
    fail_usage("most_pairs is {}; expected a number without a cache, or 0 for all", most_pairs);
  }
}

}  // namespace attend
