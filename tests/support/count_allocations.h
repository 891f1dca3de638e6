#pragma once

#include <cstdint>
#include <cstdlib>
#include <new>

namespace attend::testing {

/// Calls of the global operator new on this thread. Included by one file of a test binary, whose
/// operator new it becomes.
inline thread_local int64_t allocations = 0;

}  // namespace attend::testing

// The sanitizers have an operator new of their own, of which this would be half.
#ifndef ATTEND_SANITIZE
// NOLINTBEGIN
// The compiler takes what it has put in place of one for the other's counterpart.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void* operator new(std::size_t size) {
  ++attend::testing::allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
// NOLINTEND
#endif
