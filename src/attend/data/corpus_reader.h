#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <vector>

#include "attend/base/error.h"
#include "attend/data/corpus_options.h"
#include "attend/data/corpus_summary.h"
#include "attend/data/pair_tokenizer.h"
#include "attend/data/token_store.h"

namespace attend {

/// CorpusOptions::stop ended the reading of a corpus. The message says how to go on.
class StoppedReading : public Error {
 public:
  using Error::Error;
};

/// Reads corpora, tokenizes them on several threads, and puts what is kept into a store, in order.
/// Memory: some thousand lines a thread.
class CorpusReader {
 public:
  /// All must outlive it. `summary` is of what `store` holds already: reading goes on behind it.
  CorpusReader(const CorpusOptions& options, const PairTokenizer& tokenize, TokenStore& store,
               CorpusSummary& summary);

  /// Called after every 128 Ki pairs, where store and summary agree with each other.
  std::function<void()> on_commit;

  /// Reads to the end. Throws Error as ParallelReader and LineReader do, and StoppedReading; store
  /// and summary then agree, too, unless it was the store that failed.
  void read();

 private:
  using Clock = std::chrono::steady_clock;

  void read_part(const ParallelFiles& files);
  void read_chunks(ParallelReader& reader, int64_t most);
  void skip(ParallelReader& reader, int64_t pairs);
  std::vector<TextPair> next_chunk(ParallelReader& reader, int64_t most) const;
  void start(std::vector<TextPair> pairs);
  void take_first();
  /// Shows progress and sees whether to stop.
  void keep_in_touch(const ParallelReader& reader);

  const CorpusOptions& options_;
  const PairTokenizer& tokenize_;
  TokenStore& store_;
  CorpusSummary& summary_;
  std::deque<std::future<TokenizedPairs>> in_work_;
  std::size_t most_in_work_;
  int64_t uncommitted_ = 0;
  int64_t bytes_of_parts_done_ = 0;
  int64_t bytes_in_all_ = 0;
  int64_t bytes_skipped_ = -1;  ///< what was read by an earlier start; below 0: not known yet
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_ = Clock::now();
};

/// Bytes of files on the disk.
int64_t bytes_on_disk(const ParallelFiles& files);

}  // namespace attend
