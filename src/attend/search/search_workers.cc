#include "attend/search/search_workers.h"

#include <algorithm>
#include <iterator>
#include <system_error>

#include "attend/base/error.h"
#include "attend/kernels/gemm.h"

namespace attend {

SearchWorkers::SearchWorkers(std::shared_ptr<const Transformer> model, SearchTokens tokens,
                             const SearchOptions& options, int64_t workers, int64_t memory)
    : model_(std::move(model)),
      tokens_(std::move(tokens)),
      options_(options),
      memory_limit_(memory),
      idle_(workers) {
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

void SearchWorkers::submit(std::vector<Sentence> sentences) {
  {
    const std::lock_guard lock(mutex_);
    for (Sentence& sentence : sentences) {
      const Key key(search_cost(std::ssize(sentence.request.source), options_), next_number_++);
      waiting_cost_ += key.first;
      by_age_.push_back(key);
      waiting_.emplace(key, std::move(sentence));
    }
  }
  work_.notify_all();
}

void SearchWorkers::run() {
  use_one_thread_here();
  MemoryPool memory;
  if (memory_limit_ > 0) memory.limit(memory_limit_);
  std::unique_lock lock(mutex_);
  for (;;) {
    if (memory_limit_ > 0 && waiting_.empty()) memory.release();
    work_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
    if (stop_) return;
    std::vector<Sentence> group = take_group();
    --idle_;
    lock.unlock();
    search(memory, std::move(group));
    lock.lock();
    ++idle_;
  }
}

std::map<SearchWorkers::Key, SearchWorkers::Sentence>::iterator SearchWorkers::oldest() {
  for (;;) {
    const auto found = waiting_.find(by_age_.front());
    by_age_.pop_front();
    if (found != waiting_.end()) return found;
  }
}

SearchWorkers::Sentence SearchWorkers::take(std::map<Key, Sentence>::iterator position) {
  waiting_cost_ -= position->first.first;
  Sentence sentence = std::move(position->second);
  waiting_.erase(position);
  return sentence;
}

std::vector<SearchWorkers::Sentence> SearchWorkers::take_group() {
  const int64_t share = (waiting_cost_ + idle_ - 1) / idle_;
  const int64_t budget = std::min(search_budget(options_), share);
  const auto first = oldest();
  const int64_t wanted = first->first.first;
  int64_t cost = wanted;
  auto after = std::next(first);
  std::vector<Sentence> group;
  group.push_back(take(first));
  while (!waiting_.empty()) {
    const bool no_longer = after == waiting_.end(), no_shorter = after == waiting_.begin();
    const auto before = no_shorter ? after : std::prev(after);
    const bool shorter =
        no_longer || (!no_shorter && wanted - before->first.first < after->first.first - wanted);
    const auto nearest = shorter ? before : after;
    cost += nearest->first.first;
    if (cost > budget) break;
    if (!shorter) ++after;
    group.push_back(take(nearest));
  }
  return group;
}

void SearchWorkers::search(MemoryPool& memory, std::vector<Sentence> group) const {
  std::vector<std::vector<Hypothesis>> results(group.size());
  std::exception_ptr error;
  try {
    std::vector<SearchRequest> requests;
    requests.reserve(group.size());
    for (Sentence& sentence : group) requests.push_back(std::move(sentence.request));
    Context context{.memory = &memory, .compute = model_->compute()};
    results = beam_search(*model_, context, requests, tokens_, options_);
  } catch (...) {
    error = std::current_exception();
  }
  for (std::size_t i = 0; i < group.size(); ++i) group[i].done(std::move(results[i]), error);
}

}  // namespace attend
