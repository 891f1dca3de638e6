#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "attend/base/profile.h"
#include "attend/data/batch_plan.h"
#include "attend/data/batches.h"

namespace attend {
namespace {

constexpr std::size_t kBatchesAhead = 8;

}  // namespace

struct BatchStream::State {
  State(const ParallelCorpus& data, const BatchOptions& options, DataPosition start,
        PairDropout dropout)
      : corpus(data), plan(data, options, start, std::move(dropout)), position(plan.position()) {}

  void produce();

  const ParallelCorpus& corpus;
  BatchPlan plan;  ///< the thread's own once it runs

  std::mutex mutex;  ///< guards what follows
  std::condition_variable changed;
  struct Made {
    Batch batch;
    DataPosition next;
  };
  std::deque<Made> made;
  DataPosition position;
  std::exception_ptr error;
  bool stopping = false;

  std::thread thread;
};

void BatchStream::State::produce() {
  try {
    for (;;) {
      Batch batch = plan.next();
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return stopping || made.size() < kBatchesAhead; });
      if (stopping) return;
      made.push_back({std::move(batch), plan.position()});
      changed.notify_all();
    }
  } catch (...) {
    const std::lock_guard lock(mutex);
    error = std::current_exception();
    changed.notify_all();
  }
}

BatchStream::BatchStream(const ParallelCorpus& corpus, const BatchOptions& options,
                         DataPosition position, PairDropout dropout)
    : state_(std::make_unique<State>(corpus, options, position, std::move(dropout))) {
  state_->thread = std::thread([state = state_.get()] { state->produce(); });
}

BatchStream::~BatchStream() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_all();
  state_->thread.join();
}

Batch BatchStream::next() {
  const ProfileScope scope("waiting for data");
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return !state_->made.empty() || state_->error != nullptr; });
  if (state_->made.empty()) std::rethrow_exception(state_->error);
  State::Made made = std::move(state_->made.front());
  state_->made.pop_front();
  state_->position = made.next;
  lock.unlock();
  state_->changed.notify_all();
  return std::move(made.batch);
}

DataPosition BatchStream::position() const {
  const std::lock_guard lock(state_->mutex);
  return state_->position;
}

int64_t BatchStream::pairs_in_epoch(int64_t epoch) const {
  return count_pairs(state_->corpus.parts(), epoch);
}

}  // namespace attend
