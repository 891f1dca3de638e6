#include "attend/base/random.h"

#include <cmath>
#include <numbers>

namespace attend {

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

uint64_t mix_seed(uint64_t seed, uint64_t index) {
  const auto words =
      philox4x32({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), 0x5EED, 0},
                 {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return static_cast<uint64_t>(words[1]) << 32 | words[0];
}

uint32_t RandomGenerator::next_uint32() {
  if (used_ == 4) {
    words_ = philox4x32({static_cast<uint32_t>(block_), static_cast<uint32_t>(block_ >> 32),
                         static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)},
                        {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
    ++block_;
    used_ = 0;
  }
  return words_[used_++];
}

uint64_t RandomGenerator::next_uint64() {
  const uint64_t high = next_uint32();
  return high << 32 | next_uint32();
}

uint64_t RandomGenerator::uniform_index(uint64_t bound) {
  const uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  uint64_t drawn = next_uint64();
  while (drawn >= limit) drawn = next_uint64();
  return drawn % bound;
}

float RandomGenerator::uniform() { return static_cast<float>(next_uint32() >> 8) * 0x1p-24f; }

float RandomGenerator::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - static_cast<double>(uniform())));
  const double angle = 2.0 * std::numbers::pi * static_cast<double>(uniform());
  return static_cast<float>(radius * std::cos(angle));
}

}  // namespace attend
