#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "attend/search/beam_search.h"
#include "attend/search/search_pool.h"

namespace attend {

/// Threads that search for translations of whoever's sentences, each with a SearchPool. Whenever
/// there is room in its pool, a worker takes the oldest waiting sentences, as many as go in, and
/// leaves the others their share. It does not wait for more to come. Safe to use from many threads.
class SearchWorkers {
 public:
  /// models: an ensemble, one or more. `memory` bytes are what a worker keeps at most, and then
  /// only while it has work; 0: no limit.
  SearchWorkers(std::vector<std::shared_ptr<const Transformer>> models, SearchTokens tokens,
                const SearchOptions& options, int64_t workers, int64_t memory = 0);
  SearchWorkers(const SearchWorkers&) = delete;
  SearchWorkers& operator=(const SearchWorkers&) = delete;
  /// Finishes what is being searched; drops what waits, uncalled.
  ~SearchWorkers();

  void submit(std::vector<SearchSentence> sentences);
  int64_t count() const { return workers_; }

 private:
  void run();
  void stop();
  std::vector<SearchSentence> take(const SearchPool& pool);

  std::vector<std::shared_ptr<const Transformer>> models_;
  SearchTokens tokens_;
  SearchOptions options_;
  int64_t workers_;
  int64_t memory_limit_;

  std::mutex mutex_;
  std::condition_variable work_;
  std::deque<SearchSentence> waiting_;  ///< oldest first
  int64_t cost_ = 0;                    ///< of what waits and what is in the pools
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace attend
