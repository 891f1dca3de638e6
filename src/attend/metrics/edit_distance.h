#pragma once

#include <cstdint>
#include <vector>

#include "attend/metrics/ngrams.h"

namespace attend {

/// What becomes of a word when a hypothesis is turned into its reference.
enum class Edit : uint8_t { kNone, kMatch, kSubstitute, kDelete, kInsert };

/// Levenshtein distances between a reference and a hypothesis, and many reorderings of that
/// hypothesis. As in Tercom only cells within 25 of the diagonal are looked at (the diagonal of the
/// words' proportion), so that for texts of very different order the distance is not the least.
/// Only those cells are kept, so that a line of a million words takes no more than a few hundred
/// MB.
class BeamEditDistance {
 public:
  explicit BeamEditDistance(Symbols reference) : reference_(reference) {}

  /// Takes `hypothesis` as the text to reorder, and returns its distance.
  int32_t set_hypothesis(std::vector<uint32_t> hypothesis);
  /// The edits that make the hypothesis its reference, in their order. Of ways equally short, the
  /// one with matches and substitutions, then deletions, then insertions as late as can be.
  std::vector<Edit> edits() const;
  /// The distance of a reordering of the hypothesis. Work for words at the start that it leaves in
  /// place is not done again.
  int32_t distance_of(Symbols reordered);

  const std::vector<uint32_t>& hypothesis() const { return hypothesis_; }

 private:
  /// The columns of a row that are looked at.
  struct Columns {
    int64_t begin;
    int64_t end;
  };
  /// Lays out the rows for a hypothesis of so many words.
  void lay_out(size_t rows);
  Columns columns_of_row(size_t row, size_t rows) const;
  void fill_row(size_t row, Symbols words, std::vector<int32_t>& costs, Edit* edits) const;
  /// Where a cell is kept; it must be among the row's columns.
  size_t index(size_t row, int64_t column) const {
    return row * stride_ + static_cast<size_t>(column - columns_[row].begin);
  }
  int32_t distance_in(const std::vector<int32_t>& costs) const {
    return costs[index(columns_.size() - 1, static_cast<int64_t>(reference_.size()))];
  }

  Symbols reference_;
  std::vector<uint32_t> hypothesis_;
  std::vector<Columns> columns_;  ///< [words + 1]
  size_t stride_ = 0;             ///< the most columns that a row has
  std::vector<int32_t> costs_;    ///< [words + 1, stride_] of the hypothesis
  std::vector<Edit> edits_;       ///< the edit that each cell of costs_ came by
  std::vector<int32_t> scratch_;  ///< costs of a reordering, from its first moved word on
};

}  // namespace attend
