#include "attend/tensor/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <limits>

#include "attend/base/available_memory.h"
#include "attend/base/error.h"

namespace attend {
namespace {

constexpr int64_t kAlignment = 64;
/// Blocks from this size on are mapped one by one, so that a freed one really is the system's
/// again: the heap gives back only what lies at its end.
constexpr int64_t kLeastMapped = int64_t{256} << 10;
/// A kept block serves where it is so many sizes larger at most, or up to a third: lanes differ in
/// their tokens, and without it blocks of every size that a lane ever asked for would pile up.
/// Under a limit these are given back instead, so that what is in use stays as small as was
/// planned.
constexpr int kMostLarger = 2;
constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

/// Eight sizes for every power of two from the least block on: at most 12.5% is wasted, and blocks
/// of nearly equal size (batches differ by a few tokens) serve each other.
constexpr int kSizesADoubling = 8;
constexpr int kLeastShift = 9;  // 512 bytes
constexpr int kSizeClasses = (63 - kLeastShift) * kSizesADoubling;

/// The number of the least class that holds so many bytes.
int class_for(int64_t bytes) {
  bytes = std::max<int64_t>(bytes, int64_t{1} << kLeastShift) - 1;
  const auto shift = static_cast<int>(std::bit_width(static_cast<uint64_t>(bytes))) - 4;
  const auto eighths = static_cast<int>(bytes >> shift) + 1;  // from 9 to 16
  return (shift + 3 - kLeastShift) * kSizesADoubling + eighths - kSizesADoubling;
}

int64_t size_of_class(int number) {
  const int64_t eighths = kSizesADoubling + number % kSizesADoubling;
  return eighths << (number / kSizesADoubling + kLeastShift - 3);
}

}  // namespace

class MemoryPool::State {
 public:
  explicit State(bool keep_freed) : keep_freed_(keep_freed) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { release(); }

  /// A block of the class `number`, or one that was kept and is little larger; `number` becomes its
  /// own. Null where the system has none to give.
  std::byte* take(int& number) {
    const std::lock_guard lock(mutex_);
    const int largest = limit_ == kNoLimit ? number + kMostLarger : number;
    for (int each = number; each <= std::min(largest, kSizeClasses - 1); ++each) {
      if (kept(each).empty()) continue;
      number = each;
      return in_use(take_kept(each), each);
    }
    const int64_t size = size_of_class(number);
    while (kept_bytes_ > 0 && in_use_ + kept_bytes_ + size > limit_) free_largest();
    return in_use(from_system(size), number);
  }

  void give(std::byte* block, int number) {
    const std::lock_guard lock(mutex_);
    const int64_t size = size_of_class(number);
    in_use_ -= size;
    if (!keep_freed_) return to_system(block, size);
    kept(number).push_back(block);
    kept_bytes_ += size;
  }

  void release() {
    const std::lock_guard lock(mutex_);
    while (kept_bytes_ > 0) free_largest();
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

  std::vector<std::byte*>& kept(int number) { return kept_[static_cast<std::size_t>(number)]; }

  std::byte* take_kept(int number) {
    std::byte* block = kept(number).back();
    kept(number).pop_back();
    kept_bytes_ -= size_of_class(number);
    return block;
  }

  std::byte* in_use(std::byte* block, int number) {
    if (block == nullptr) return nullptr;
    in_use_ += size_of_class(number);
    peak_ = std::max(peak_, in_use_);
    return block;
  }

  void free_largest() {
    int number = kSizeClasses - 1;
    while (kept(number).empty()) --number;
    to_system(take_kept(number), size_of_class(number));
  }

  const bool keep_freed_;
  mutable std::mutex mutex_;
  std::array<std::vector<std::byte*>, kSizeClasses> kept_;  ///< by size
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
  int number = class_for(bytes);
  std::byte* block = state_->take(number);
  if (block == nullptr) {
    fail("out of memory: the system refused {} more MiB; use a smaller batch or model",
         (size_of_class(number) >> 20) + 1);
  }
  return {block, [state = state_, number](std::byte* freed) { state->give(freed, number); }};
}

void MemoryPool::release() {
  state_->release();
  trim_heap();  // small blocks lie in the heap
}
void MemoryPool::limit(int64_t bytes) { state_->limit(bytes); }
void MemoryPool::reset_peak() { state_->reset_peak(); }
int64_t MemoryPool::bytes_in_use() const { return state_->in_use(); }
int64_t MemoryPool::peak_bytes() const { return state_->peak(); }
int64_t MemoryPool::held_bytes() const { return state_->held(); }

}  // namespace attend
