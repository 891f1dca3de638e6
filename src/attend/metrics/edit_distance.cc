#include "attend/metrics/edit_distance.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace attend {

namespace {

constexpr double kBeamWidth = 25;
constexpr int32_t kUnreached = 1 << 28;

}  // namespace

BeamEditDistance::Columns BeamEditDistance::columns_of_row(size_t row, size_t rows) const {
  const double ratio = static_cast<double>(reference_.size()) / static_cast<double>(rows);
  // With lengths very different, rows would not overlap: widen the beam.
  const double beam = kBeamWidth < ratio / 2 ? std::ceil(ratio / 2 + kBeamWidth) : kBeamWidth;
  const double diagonal = std::floor(static_cast<double>(row) * ratio);
  const auto last = static_cast<int64_t>(width());
  const auto begin = static_cast<int64_t>(std::max(0.0, diagonal - beam));
  if (row == rows) return {begin, last};
  return {begin, std::min(last, static_cast<int64_t>(diagonal + beam))};
}

/// Row `row` of `costs` from the row above; `edits` is null where nobody will ask for them.
void BeamEditDistance::fill_row(size_t row, Symbols words, std::vector<int32_t>& costs,
                                Edit* edits) const {
  int32_t* current = costs.data() + row * width();
  const int32_t* above = current - width();
  const auto [begin, end] = columns_of_row(row, words.size());
  std::fill(current, current + width(), kUnreached);
  for (int64_t column = begin; column < end; ++column) {
    int32_t cost = kUnreached;
    Edit edit = Edit::kNone;
    const auto offer = [&](int32_t other_cost, Edit other) {
      if (other_cost >= cost) return;
      cost = other_cost;
      edit = other;
    };
    if (column > 0) {
      const bool match = words[row - 1] == reference_[static_cast<size_t>(column - 1)];
      offer(above[column - 1] + (match ? 0 : 1), match ? Edit::kMatch : Edit::kSubstitute);
    }
    offer(above[column] + 1, Edit::kDelete);
    if (column > 0) offer(current[column - 1] + 1, Edit::kInsert);
    current[column] = cost;
    if (edits != nullptr) edits[row * width() + static_cast<size_t>(column)] = edit;
  }
}

int32_t BeamEditDistance::set_hypothesis(std::vector<uint32_t> hypothesis) {
  hypothesis_ = std::move(hypothesis);
  const size_t rows = hypothesis_.size();
  costs_.resize((rows + 1) * width());
  scratch_.resize(costs_.size());
  edits_.assign(costs_.size(), Edit::kNone);
  for (size_t column = 0; column < width(); ++column) {
    costs_[column] = static_cast<int32_t>(column);
    edits_[column] = Edit::kInsert;
  }
  for (size_t row = 1; row <= rows; ++row) fill_row(row, hypothesis_, costs_, edits_.data());
  return costs_.back();
}

std::vector<Edit> BeamEditDistance::edits() const {
  std::vector<Edit> edits;
  size_t row = hypothesis_.size(), column = reference_.size();
  while (row > 0 || column > 0) {
    const Edit edit = edits_[row * width() + column];
    edits.push_back(edit);
    if (edit != Edit::kInsert) --row;
    if (edit != Edit::kDelete) --column;
  }
  std::reverse(edits.begin(), edits.end());
  return edits;
}

int32_t BeamEditDistance::distance_of(Symbols reordered) {
  const auto moved = std::mismatch(reordered.begin(), reordered.end(), hypothesis_.begin()).first;
  const auto kept = static_cast<size_t>(moved - reordered.begin());
  if (kept == reordered.size()) return costs_.back();
  const auto start = static_cast<int64_t>(kept * width());
  std::copy_n(costs_.begin() + start, width(), scratch_.begin() + start);
  for (size_t row = kept + 1; row <= reordered.size(); ++row) {
    fill_row(row, reordered, scratch_, nullptr);
  }
  return scratch_.back();
}

}  // namespace attend
