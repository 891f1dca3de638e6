#include "attend/metrics/pcg64.h"

#include <array>
#include <bit>
#include <cstddef>

namespace attend {

namespace {

constexpr size_t kPoolSize = 4;

/// NumPy's SeedSequence, which spreads a seed over a pool of 128 bits and draws a generator's state
/// from it (after O'Neill 2015, "Developing a seed_seq Alternative").
class SeedSequence {
 public:
  explicit SeedSequence(uint64_t seed) {
    const std::array<uint32_t, kPoolSize> entropy = {static_cast<uint32_t>(seed),
                                                     static_cast<uint32_t>(seed >> 32)};
    uint32_t constant = 0x43b0d7e5;
    const auto hash = [&constant](uint32_t value) { return hashed(value, constant, 0x931e8875); };
    for (size_t i = 0; i < kPoolSize; ++i) pool_[i] = hash(entropy[i]);
    for (size_t from = 0; from < kPoolSize; ++from) {
      for (size_t to = 0; to < kPoolSize; ++to) {
        if (from != to) pool_[to] = mixed(pool_[to], hash(pool_[from]));
      }
    }
  }

  uint64_t next_uint64() {
    const uint64_t low = next_uint32();
    return low | uint64_t{next_uint32()} << 32;
  }

 private:
  static uint32_t hashed(uint32_t value, uint32_t& constant, uint32_t multiplier) {
    value ^= constant;
    constant *= multiplier;
    value *= constant;
    return value ^ value >> 16;
  }

  static uint32_t mixed(uint32_t a, uint32_t b) {
    const uint32_t mix = 0xca01f9ddU * a - 0x4973f715U * b;
    return mix ^ mix >> 16;
  }

  uint32_t next_uint32() { return hashed(pool_[drawn_++ % kPoolSize], constant_, 0x58f38ded); }

  std::array<uint32_t, kPoolSize> pool_{};
  size_t drawn_ = 0;
  uint32_t constant_ = 0x8b51f9dd;
};

}  // namespace

Pcg64::Pcg64(uint64_t seed) {
  SeedSequence sequence(seed);
  const auto next_word = [&sequence] {
    const Word high = sequence.next_uint64();
    return high << 64 | sequence.next_uint64();
  };
  const Word start = next_word();
  increment_ = next_word() << 1 | 1;
  step();
  state_ += start;
  step();
}

void Pcg64::step() {
  constexpr Word kMultiplier = Word{0x2360ed051fc65da4} << 64 | 0x4385df649fccf645;
  state_ = state_ * kMultiplier + increment_;
}

uint64_t Pcg64::next_uint64() {
  step();
  const uint64_t folded = static_cast<uint64_t>(state_ >> 64) ^ static_cast<uint64_t>(state_);
  return std::rotr(folded, static_cast<int>(state_ >> 122));
}

uint32_t Pcg64::next_uint32() {
  if (has_half_) {
    has_half_ = false;
    return half_;
  }
  const uint64_t both = next_uint64();
  half_ = static_cast<uint32_t>(both >> 32);
  has_half_ = true;
  return static_cast<uint32_t>(both);
}

uint32_t Pcg64::uniform_index(uint32_t bound) {
  if (bound == 1) return 0;
  uint64_t product = uint64_t{next_uint32()} * bound;
  const uint32_t threshold = (0 - bound) % bound;
  while (static_cast<uint32_t>(product) < threshold) product = uint64_t{next_uint32()} * bound;
  return static_cast<uint32_t>(product >> 32);
}

}  // namespace attend
