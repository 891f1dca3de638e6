#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attend/data/corpus_progress.h"
#include "attend/data/parallel_text.h"

namespace attend {

struct CorpusOptions {
  std::vector<ParallelFiles> corpora = {};
  /// TSV lines without exactly one tab are left out and counted instead of an Error.
  bool skip_bad_lines = false;
  /// Pairs with a side of more tokens are left out. EOS is not counted. 0: no limit.
  int64_t max_length = 256;
  /// Pairs whose longer side has more than this many times the tokens of the shorter one are left
  /// out. 0: no limit.
  double max_length_ratio = 9.0;
  /// Threads that tokenize while the files are read; 0: one a core. The result does not depend on
  /// it.
  int64_t threads = 0;
  /// The folder of the cache (CorpusCache). Empty: token ids go to a file that has no name and ends
  /// with the corpus.
  std::string cache = {};
  /// A sample: only so many pairs of each corpus are read. 0: all. Not with a cache.
  int64_t most_pairs = 0;
  /// Called from time to time while text is read.
  std::function<void(const CorpusProgress&)> on_progress = {};
  /// Where it becomes true, reading ends with StoppedReading.
  const std::atomic<bool>* stop = nullptr;

  /// Throws UsageError for what cannot be meant.
  void validate() const;
};

}  // namespace attend
