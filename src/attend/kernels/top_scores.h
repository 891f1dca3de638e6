#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attend/kernels/packed_matrix.h"

namespace attend {

/// What is sought in a row of scores.
struct TopScoresWanted {
  int64_t best = 1;                      ///< k: so many, at most the number of columns
  std::span<const int32_t> scores = {};  ///< those of these columns
  bool log_sums = true;                  ///< else the greatest score takes the place of the sum
};

/// Of a row of scores: the best entries, best first (ties: the lower index), and the logarithm of
/// the sum of all exponentials, so that log p = score - log_sum; it is not finite where a score is
/// not a number or +infinity.
struct TopScores {
  std::vector<int32_t> indices;  ///< [rows · k]
  std::vector<float> scores;     ///< [rows · k]
  std::vector<float> log_sums;   ///< [rows]
  std::vector<float> wanted;     ///< [rows · wanted]: the scores that were asked for by index
};

/// Of each row of float32 `logits`. What `top` held is lost, its memory is used again.
void top_scores(const Tensor& logits, const TopScoresWanted& wanted, TopScores& top);
TopScores top_scores(const Tensor& logits, int64_t k);

/// The same of the rows of x · Wᵀ, tile by tile: no row of scores is ever there as a whole. x
/// [rows, in] float32 or bfloat16, weight [vocabulary, in].
void project_top_scores(const Tensor& x, const PackedMatrix& weight, const TopScoresWanted& wanted,
                        TopScores& top);

}  // namespace attend
