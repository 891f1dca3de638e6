#include "attend/base/worker_pool.h"

#include <sched.h>

#include <algorithm>
#include <system_error>

#include "attend/base/error.h"

namespace attend {

WorkerPool::WorkerPool(int64_t workers, std::function<void()> on_start)
    : on_start_(std::move(on_start)) {
  try {
    for (int64_t worker = 0; worker < workers; ++worker) {
      threads_.emplace_back([this, worker] { work(worker); });
    }
  } catch (const std::system_error& error) {
    stop();
    fail("cannot start {} worker{}, only {}: {}; ask for fewer", workers, workers == 1 ? "" : "s",
         threads_.size(), error.code().message());
  }
}

WorkerPool::~WorkerPool() { stop(); }

void WorkerPool::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::run(const std::function<void(int64_t worker)>& job) {
  std::unique_lock lock(mutex_);
  job_ = &job;
  running_ = size();
  failure_ = nullptr;
  ++round_;
  wake_.notify_all();
  done_.wait(lock, [this] { return running_ == 0; });
  job_ = nullptr;
  if (failure_) std::rethrow_exception(failure_);
}

void WorkerPool::work(int64_t worker) {
  if (on_start_) on_start_();
  int64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stopping_ || round_ != seen; });
    if (stopping_) return;
    seen = round_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      (*job_)(worker);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure && !failure_) failure_ = failure;
    if (--running_ == 0) done_.notify_one();
  }
}

int64_t available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    return std::max<int64_t>(1, CPU_COUNT(&set));
  }
  return std::max<int64_t>(1, std::thread::hardware_concurrency());
}

}  // namespace attend
