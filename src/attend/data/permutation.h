#pragma once

#include <array>
#include <cstdint>

namespace attend {

/// A shuffled order of the numbers from 0 to size - 1 that takes no memory: each number stands at
/// exactly one position, and which one is a function of `key` alone.
///
/// A Feistel network over the next power of two, 1024 at least (Luby and Rackoff 1988), whose two
/// halves differ by one bit at most, walked along its cycle until it is below `size` (Black and
/// Rogaway 2002, "Ciphers with Arbitrary Finite Domains"). Its round function is the finalizer of
/// SplitMix64 (Steele, Lea and Flood 2014). Promised for ever: a checkpoint finds its data by it.
class Permutation {
 public:
  /// `size` is 1 at least.
  Permutation(int64_t size, uint64_t key);

  int64_t size() const { return static_cast<int64_t>(size_); }
  /// What stands at `position`, from 0 to size() - 1.
  int64_t operator[](int64_t position) const;

 private:
  uint64_t once(uint64_t value) const;

  static constexpr int kRounds = 12;
  uint64_t size_;
  int left_bits_;
  int right_bits_;
  std::array<uint64_t, kRounds> round_keys_;
};

}  // namespace attend
