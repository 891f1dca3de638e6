#pragma once

#include <array>
#include <cstdint>

namespace attend {

/// Counter-based random numbers: Philox4x32-10 of Salmon et al. 2011, "Parallel Random Numbers: As
/// Easy as 1, 2, 3". The output is a pure function of key and counter, so that a draw does not
/// depend on what was drawn before it, by whom, or on how many threads.
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// Where a random draw stands in a run. Ops take one each and add their own element index.
struct RandomKey {
  uint64_t seed = 0;  ///< of the run, mixed with the step
  uint32_t lane = 0;  ///< which part of the step's batch
  uint32_t op = 0;    ///< which op of the lane, counted in the order of the forward pass
};

/// Mixes a run's seed with a step (or any other index) into one well-spread 64-bit seed.
uint64_t mix_seed(uint64_t seed, uint64_t index);

/// A small sequential generator over philox4x32, for initial weights and shuffles.
class RandomGenerator {
 public:
  explicit RandomGenerator(uint64_t seed, uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  uint32_t next_uint32();
  uint64_t next_uint64();
  /// Uniform in [0, bound), without modulo bias. bound must be positive.
  uint64_t uniform_index(uint64_t bound);
  /// Uniform in [0, 1), 24 random bits.
  float uniform();
  /// Standard normal (Box and Muller 1958).
  float normal();

 private:
  uint64_t seed_;
  uint64_t stream_;
  uint64_t block_ = 0;
  unsigned used_ = 4;
  std::array<uint32_t, 4> words_{};
};

}  // namespace attend
