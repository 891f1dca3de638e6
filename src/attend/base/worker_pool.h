#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace attend {

/// Threads that stay and do one job together at a time. They wait without spinning.
class WorkerPool {
 public:
  /// `on_start` runs first on every worker's thread. Throws Error where the system has no more
  /// threads to give.
  explicit WorkerPool(int64_t workers, std::function<void()> on_start = nullptr);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  ~WorkerPool();

  int64_t size() const { return static_cast<int64_t>(threads_.size()); }
  /// Runs job(worker) once on every worker and returns when all are done. Throws the first
  /// exception that a job threw.
  void run(const std::function<void(int64_t worker)>& job);

 private:
  void work(int64_t worker);
  void stop();

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(int64_t)>* job_ = nullptr;
  int64_t round_ = 0;
  int64_t running_ = 0;
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::function<void()> on_start_;
  std::vector<std::thread> threads_;
};

/// The cores that this process may use: its CPU affinity, and at least 1.
int64_t available_cores();

}  // namespace attend
