#pragma once

#include <cstdint>

namespace attend {

/// The numbers of NumPy's `numpy.random.default_rng(seed)`, so that resampling draws the same
/// segments as sacreBLEU: PCG XSL RR 128/64 (O'Neill 2014, "PCG: A Family of Simple Fast
/// Space-Efficient Statistically Good Algorithms for Random Number Generation"), seeded as NumPy's
/// SeedSequence does it.
class Pcg64 {
 public:
  explicit Pcg64(uint64_t seed);

  uint64_t next_uint64();
  /// Halves of next_uint64(), the lower one first.
  uint32_t next_uint32();
  /// Uniform in [0, bound), as `integers(bound)` and `choice(bound)` draw it (Lemire 2019, "Fast
  /// Random Integer Generation in an Interval"). bound is from 1 to 2^32 - 1; for 1 nothing is
  /// drawn.
  uint32_t uniform_index(uint32_t bound);

 private:
  __extension__ using Word = unsigned __int128;

  void step();

  Word state_ = 0;
  Word increment_ = 0;
  bool has_half_ = false;
  uint32_t half_ = 0;
};

/// The bits of `integers(2, size=N, dtype=bool)`: 32 from each number, the lowest first.
class Pcg64Bits {
 public:
  explicit Pcg64Bits(Pcg64& generator) : generator_(generator) {}

  bool next() {
    if (left_ == 0) {
      bits_ = generator_.next_uint32();
      left_ = 32;
    }
    const bool bit = (bits_ & 1) != 0;
    bits_ >>= 1;
    --left_;
    return bit;
  }

 private:
  Pcg64& generator_;
  uint32_t bits_ = 0;
  int left_ = 0;
};

}  // namespace attend
