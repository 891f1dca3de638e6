#include "attend/search/search_workers.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "attend/base/error.h"
#include "attend/kernels/compute_thread.h"

namespace attend {

SearchWorkers::SearchWorkers(std::vector<std::shared_ptr<const Transformer>> models,
                             SearchTokens tokens, const SearchOptions& options, int64_t workers,
                             int64_t memory)
    : models_(std::move(models)),
      tokens_(std::move(tokens)),
      options_(options),
      workers_(workers),
      memory_limit_(memory) {
  try {
    for (int64_t i = 0; i < workers; ++i) threads_.emplace_back([this] { run(); });
  } catch (const std::system_error& error) {
    stop();
    fail("cannot start {} workers, only {}: {}; ask for fewer", workers, threads_.size(),
         error.code().message());
  }
}

SearchWorkers::~SearchWorkers() { stop(); }

void SearchWorkers::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void SearchWorkers::submit(std::vector<SearchSentence> sentences) {
  {
    const std::lock_guard lock(mutex_);
    for (SearchSentence& sentence : sentences) {
      cost_ += search_cost(sentence.request, options_);
      waiting_.push_back(std::move(sentence));
    }
  }
  work_.notify_all();
}

void SearchWorkers::run() {
  prepare_compute_thread();
  MemoryPool memory;
  if (memory_limit_ > 0) memory.limit(memory_limit_);
  std::vector<const Transformer*> models;
  for (const auto& model : models_) models.push_back(model.get());
  SearchPool pool(models, memory, tokens_, options_);
  std::unique_lock lock(mutex_);
  for (;;) {
    if (pool.empty()) {
      if (memory_limit_ > 0 && waiting_.empty()) {
        pool.release();
        memory.release();
      }
      work_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
      if (stop_) return;
    }
    std::vector<SearchSentence> entering = take(pool);
    int64_t left = pool.cost();
    for (const SearchSentence& sentence : entering) left += search_cost(sentence.request, options_);
    lock.unlock();
    if (!entering.empty()) pool.add(std::move(entering));
    pool.step();
    left -= pool.cost();
    lock.lock();
    cost_ -= left;
  }
}

/// What enters a worker's pool now.
std::vector<SearchSentence> SearchWorkers::take(const SearchPool& pool) {
  std::vector<SearchSentence> taken;
  const int64_t share = (cost_ + workers_ - 1) / workers_ - pool.cost();
  int64_t room = std::min(pool.room(), share);
  while (!waiting_.empty() && !stop_) {
    room -= search_cost(waiting_.front().request, options_);
    if (room < 0 && !(pool.empty() && taken.empty())) break;
    taken.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  return taken;
}

}  // namespace attend
