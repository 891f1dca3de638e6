#include "attend/data/permutation.h"

#include <algorithm>
#include <bit>

#include "attend/base/random.h"

namespace attend {
namespace {

/// The finalizer of SplitMix64.
uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31);
}

uint64_t low_bits(uint64_t value, int bits) { return value & ((uint64_t{1} << bits) - 1); }

}  // namespace

Permutation::Permutation(int64_t size, uint64_t key) : size_(static_cast<uint64_t>(size)) {
  // In a smaller domain there are so few round functions that some orders would come more often.
  constexpr int kLeastBits = 10;
  const int bits = std::max(kLeastBits, static_cast<int>(std::bit_width(size_ - 1)));
  left_bits_ = bits / 2;
  right_bits_ = bits - left_bits_;
  for (int round = 0; round < kRounds; ++round) round_keys_[round] = mix_seed(key, round);
}

int64_t Permutation::operator[](int64_t position) const {
  uint64_t value = once(static_cast<uint64_t>(position));
  while (value >= size_) value = once(value);
  return static_cast<int64_t>(value);
}

/// Two rounds change the right half by the left one, then the left one by the right.
uint64_t Permutation::once(uint64_t value) const {
  uint64_t left = value >> right_bits_, right = low_bits(value, right_bits_);
  for (int round = 0; round < kRounds; round += 2) {
    right ^= low_bits(mix(left + round_keys_[round]), right_bits_);
    left ^= low_bits(mix(right + round_keys_[round + 1]), left_bits_);
  }
  return left << right_bits_ | right;
}

}  // namespace attend
