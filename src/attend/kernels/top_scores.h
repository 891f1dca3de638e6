#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attend/kernels/packed_matrix.h"

namespace attend {

/// Of a row of scores: the best entries, best first (ties: the lower index), and the logarithm of
/// the sum of all exponentials, so that log p = score - log_sum; it is not finite where a score is
/// not a number or +infinity.
struct TopScores {
  std::vector<int32_t> indices;  ///< [rows · k]
  std::vector<float> scores;     ///< [rows · k]
  std::vector<float> log_sums;   ///< [rows]
  std::vector<float> wanted;     ///< [rows · wanted]: the scores that were asked for by index
};

/// The k best of each row of float32 `logits`; k at most the number of columns. What `top` held is
/// lost, its memory is used again.
void top_scores(const Tensor& logits, int64_t k, std::span<const int32_t> wanted, TopScores& top);
TopScores top_scores(const Tensor& logits, int64_t k);

/// The same of the rows of x · Wᵀ, tile by tile: no row of scores is ever there as a whole. x
/// [rows, in] float32 or bfloat16, weight [vocabulary, in].
void project_top_scores(const Tensor& x, const PackedMatrix& weight, int64_t k,
                        std::span<const int32_t> wanted, TopScores& top);

}  // namespace attend
