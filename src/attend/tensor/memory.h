#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace attend {

/// Blocks of memory, aligned to 64 bytes, that are kept when freed for a caller that wants as much
/// or up to a quarter less; under a limit, as much. A worker has one of its own, so that a step
/// after the first allocates nothing from the system. Safe to use from several threads; a block may
/// outlive its pool.
class MemoryPool {
 public:
  MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;
  ~MemoryPool();

  /// For what lives long: weights, optimizer state. It keeps no freed blocks.
  static MemoryPool& global();

  /// At least `bytes`. Throws Error when the system has none to give.
  std::shared_ptr<std::byte> allocate(int64_t bytes);
  /// Returns every kept block to the system, and what else the heap can spare.
  void release();
  /// From now on blocks are kept only as long as they and those in use are within `bytes`: before
  /// the system is asked for more, the largest kept ones go back to it. What is in use may go
  /// beyond.
  void limit(int64_t bytes);

  int64_t bytes_in_use() const;  ///< handed out now
  int64_t peak_bytes() const;    ///< the most handed out at once, ever or since reset_peak()
  int64_t held_bytes() const;    ///< handed out or kept
  void reset_peak();

 private:
  class State;
  explicit MemoryPool(bool keep_freed);
  std::shared_ptr<State> state_;
};

}  // namespace attend
