#include "attend/tensor/memory.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>

#include "attend/base/error.h"

namespace attend {
namespace {

constexpr int64_t kAlignment = 64;

/// Rounds up to one of eight sizes for every power of two: at most 12.5% is wasted, and blocks of
/// nearly equal size (batches differ by a few tokens) serve each other.
int64_t size_class(int64_t bytes) {
  bytes = std::max<int64_t>(bytes, 512);
  const auto shift = static_cast<int>(std::bit_width(static_cast<uint64_t>(bytes))) - 4;
  return ((bytes - 1) >> shift << shift) + (int64_t{1} << shift);
}

}  // namespace

struct MemoryPool::State {
  explicit State(bool keep) : keep_freed(keep) {}
  ~State() { release(); }

  void release() {
    for (auto& [size, blocks] : freed) {
      for (std::byte* block : blocks) std::free(block);
    }
    freed.clear();
  }

  std::byte* take(int64_t size) {
    const std::lock_guard lock(mutex);
    in_use += size;
    peak = std::max(peak, in_use);
    const auto found = freed.find(size);
    if (found == freed.end() || found->second.empty()) return nullptr;
    std::byte* block = found->second.back();
    found->second.pop_back();
    return block;
  }

  void give(std::byte* block, int64_t size) {
    const std::lock_guard lock(mutex);
    in_use -= size;
    if (keep_freed) {
      freed[size].push_back(block);
    } else {
      std::free(block);
    }
  }

  const bool keep_freed;
  mutable std::mutex mutex;
  std::map<int64_t, std::vector<std::byte*>> freed;
  int64_t in_use = 0;
  int64_t peak = 0;
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
  const int64_t size = (size_class(bytes) + kAlignment - 1) / kAlignment * kAlignment;
  std::byte* block = state_->take(size);
  if (block == nullptr) {
    block = static_cast<std::byte*>(std::aligned_alloc(kAlignment, static_cast<std::size_t>(size)));
  }
  if (block == nullptr) {
    state_->give(nullptr, size);
    fail("out of memory: the system refused {} more MiB; use a smaller batch or model", size >> 20);
  }
  return {block, [state = state_, size](std::byte* freed) { state->give(freed, size); }};
}

void MemoryPool::release() {
  const std::lock_guard lock(state_->mutex);
  state_->release();
}

int64_t MemoryPool::bytes_in_use() const {
  const std::lock_guard lock(state_->mutex);
  return state_->in_use;
}

int64_t MemoryPool::peak_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->peak;
}

}  // namespace attend
