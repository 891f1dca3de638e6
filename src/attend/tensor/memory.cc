#include "attend/tensor/memory.h"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>

#include "attend/base/error.h"

namespace attend {
namespace {

constexpr int64_t kAlignment = 64;
/// Blocks from this size on are mapped one by one, so that a freed one really is the system's
/// again: the heap gives back only what lies at its end.
constexpr int64_t kLeastMapped = int64_t{256} << 10;
/// A kept block serves where it is larger by one part in so many at most: lanes differ in their
/// tokens, and without it blocks of every size that a lane ever asked for would pile up. Under a
/// limit these are given back instead, so that what is in use stays as small as was planned.
constexpr int64_t kMostLarger = 3;
constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

/// Rounds up to one of eight sizes for every power of two: at most 12.5% is wasted, and blocks of
/// nearly equal size (batches differ by a few tokens) serve each other.
int64_t size_class(int64_t bytes) {
  bytes = std::max<int64_t>(bytes, 512);
  const auto shift = static_cast<int>(std::bit_width(static_cast<uint64_t>(bytes))) - 4;
  const int64_t size = ((bytes - 1) >> shift << shift) + (int64_t{1} << shift);
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

class MemoryPool::State {
 public:
  explicit State(bool keep_freed) : keep_freed_(keep_freed) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { release(); }

  /// A block of `size`, or one that was kept and is little larger; `size` becomes its own. Null
  /// where the system has none to give.
  std::byte* take(int64_t& size) {
    const std::lock_guard lock(mutex_);
    std::byte* block = nullptr;
    const int64_t largest = limit_ == kNoLimit ? size + size / kMostLarger : size;
    const auto found = kept_.lower_bound(size);
    if (found != kept_.end() && found->first <= largest) {
      size = found->first;
      block = found->second.back();
      forget(found);
    } else {
      while (!kept_.empty() && in_use_ + kept_bytes_ + size > limit_) free_largest();
      block = from_system(size);
      if (block == nullptr) return nullptr;
    }
    in_use_ += size;
    peak_ = std::max(peak_, in_use_);
    return block;
  }

  void give(std::byte* block, int64_t size) {
    const std::lock_guard lock(mutex_);
    in_use_ -= size;
    if (!keep_freed_) return to_system(block, size);
    kept_[size].push_back(block);
    kept_bytes_ += size;
  }

  void release() {
    const std::lock_guard lock(mutex_);
    while (!kept_.empty()) free_largest();
  }

  void limit(int64_t bytes) {
    const std::lock_guard lock(mutex_);
    limit_ = bytes;
  }
  void reset_peak() {
    const std::lock_guard lock(mutex_);
    peak_ = in_use_;
  }

  int64_t in_use() const { return read(in_use_); }
  int64_t peak() const { return read(peak_); }
  int64_t held() const {
    const std::lock_guard lock(mutex_);
    return in_use_ + kept_bytes_;
  }

 private:
  using Kept = std::map<int64_t, std::vector<std::byte*>>;

  int64_t read(const int64_t& field) const {
    const std::lock_guard lock(mutex_);
    return field;
  }

  bool is_mapped(int64_t size) const { return keep_freed_ && size >= kLeastMapped; }

  std::byte* from_system(int64_t size) const {
    const auto bytes = static_cast<std::size_t>(size);
    if (!is_mapped(size)) return static_cast<std::byte*>(std::aligned_alloc(kAlignment, bytes));
    void* block =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block == MAP_FAILED ? nullptr : static_cast<std::byte*>(block);
  }

  void to_system(std::byte* block, int64_t size) const {
    if (is_mapped(size)) {
      ::munmap(block, static_cast<std::size_t>(size));
    } else {
      std::free(block);
    }
  }

  /// Takes the last block of its size off the list.
  void forget(Kept::iterator position) {
    kept_bytes_ -= position->first;
    position->second.pop_back();
    if (position->second.empty()) kept_.erase(position);
  }

  void free_largest() {
    const auto largest = std::prev(kept_.end());
    to_system(largest->second.back(), largest->first);
    forget(largest);
  }

  const bool keep_freed_;
  mutable std::mutex mutex_;
  Kept kept_;  ///< by size; no list is empty
  int64_t kept_bytes_ = 0;
  int64_t in_use_ = 0;
  int64_t peak_ = 0;
  int64_t limit_ = kNoLimit;
};

MemoryPool::MemoryPool() : MemoryPool(true) {}
MemoryPool::MemoryPool(bool keep_freed) : state_(std::make_shared<State>(keep_freed)) {}
MemoryPool::~MemoryPool() = default;

MemoryPool& MemoryPool::global() {
  static MemoryPool pool(false);
  return pool;
}

std::shared_ptr<std::byte> MemoryPool::allocate(int64_t bytes) {
  if (bytes < 0 || bytes > std::numeric_limits<int64_t>::max() / 4) {
    fail("cannot allocate {} bytes", bytes);
  }
  int64_t size = size_class(bytes);
  std::byte* block = state_->take(size);
  if (block == nullptr) {
    fail("out of memory: the system refused {} more MiB; use a smaller batch or model", size >> 20);
  }
  return {block, [state = state_, size](std::byte* freed) { state->give(freed, size); }};
}

void MemoryPool::release() {
  state_->release();
  malloc_trim(0);  // small blocks lie in the heap
}
void MemoryPool::limit(int64_t bytes) { state_->limit(bytes); }
void MemoryPool::reset_peak() { state_->reset_peak(); }
int64_t MemoryPool::bytes_in_use() const { return state_->in_use(); }
int64_t MemoryPool::peak_bytes() const { return state_->peak(); }
int64_t MemoryPool::held_bytes() const { return state_->held(); }

}  // namespace attend
