#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "attend/search/beam_search.h"

namespace attend {

/// Threads that search for translations of whoever's sentences. A free worker takes the oldest
/// waiting sentence and those nearest to it in length, as many as the budget allows, and leaves the
/// other free workers their share. It does not wait for more to come. Safe to use from many
/// threads.
class SearchWorkers {
 public:
  /// Called once on a worker's thread, with the hypotheses or what went wrong. Must not throw.
  using Done = std::function<void(std::vector<Hypothesis> best, std::exception_ptr error)>;
  struct Sentence {
    SearchRequest request;
    Done done;
  };

  /// `memory` bytes are what a worker keeps at most, and then only while it has work; 0: no limit.
  SearchWorkers(std::shared_ptr<const Transformer> model, SearchTokens tokens,
                const SearchOptions& options, int64_t workers, int64_t memory = 0);
  SearchWorkers(const SearchWorkers&) = delete;
  SearchWorkers& operator=(const SearchWorkers&) = delete;
  /// Finishes what is being searched; drops what waits, uncalled.
  ~SearchWorkers();

  void submit(std::vector<Sentence> sentences);
  int64_t count() const { return std::ssize(threads_); }

 private:
  using Key = std::pair<int64_t, uint64_t>;  ///< cost and number, unique

  void run();
  void stop();
  std::vector<Sentence> take_group();
  Sentence take(std::map<Key, Sentence>::iterator position);
  std::map<Key, Sentence>::iterator oldest();
  void search(MemoryPool& memory, std::vector<Sentence> group) const;

  std::shared_ptr<const Transformer> model_;
  SearchTokens tokens_;
  SearchOptions options_;
  int64_t memory_limit_;

  std::mutex mutex_;
  std::condition_variable work_;
  std::map<Key, Sentence> waiting_;  ///< by cost
  std::deque<Key> by_age_;           ///< oldest first; some have been taken already
  int64_t waiting_cost_ = 0;
  uint64_t next_number_ = 0;
  int64_t idle_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace attend
