#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attend/search/options.h"

namespace attend {

/// Draws tokens. A draw depends on the seed, the source sentence, which of its samples it is for
/// and where in the output it is, and on nothing else: contract 6 holds for sampling as well.
class Sampler {
 public:
  Sampler(std::span<const int32_t> source, const SearchOptions& options);

  /// One of `log_probs`, by index; any order, no need to sum to one, at least one finite. Only the
  /// sampling_top_k best, and of those the fewest that have sampling_top_p of their probability at
  /// this temperature together, are drawn from. Equal ones rank by index.
  std::size_t draw(std::span<const double> log_probs, int64_t sample, int64_t position);

 private:
  double uniform(int64_t sample, int64_t position) const;  ///< in [0, 1)
  void keep_best(std::size_t count);
  void keep_nucleus();

  struct Choice {
    double weight;
    std::size_t index;
  };
  static bool likelier(const Choice& a, const Choice& b);

  double temperature_;
  int64_t top_k_;
  double top_p_;
  uint64_t key_;
  std::vector<Choice> choices_;
};

}  // namespace attend
