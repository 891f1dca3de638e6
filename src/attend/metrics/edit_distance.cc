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
  const auto last = static_cast<int64_t>(reference_.size() + 1);
  const auto begin = static_cast<int64_t>(std::max(0.0, diagonal - beam));
  if (row == rows) return {begin, last};
  return {begin, std::min(last, static_cast<int64_t>(diagonal + beam))};
}

void BeamEditDistance::lay_out(size_t rows) {
  columns_.assign(1, {0, static_cast<int64_t>(reference_.size() + 1)});
  for (size_t row = 1; row <= rows; ++row) columns_.push_back(columns_of_row(row, rows));
  if (rows > 0) columns_[0].end = columns_[1].end;  // no other cells of it are asked for
  int64_t widest = 0;
  for (const auto& [begin, end] : columns_) widest = std::max(widest, end - begin);
  stride_ = static_cast<size_t>(widest);
}

/// Row `row` of `costs` from the row above; `edits` is null where nobody will ask for them.
void BeamEditDistance::fill_row(size_t row, Symbols words, std::vector<int32_t>& costs,
                                Edit* edits) const {
  const auto [begin, end] = columns_[row];
  const auto [begin_above, end_above] = columns_[row - 1];
  const int32_t* const above = costs.data() + index(row - 1, begin_above);
  const auto cost_above = [&, first = begin_above, last = end_above](int64_t column) {
    return column >= first && column < last ? above[column - first] : kUnreached;
  };
  int32_t* const current = costs.data() + index(row, begin);
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
      offer(cost_above(column - 1) + (match ? 0 : 1), match ? Edit::kMatch : Edit::kSubstitute);
    }
    offer(cost_above(column) + 1, Edit::kDelete);
    if (column > begin) offer(current[column - begin - 1] + 1, Edit::kInsert);
    current[column - begin] = cost;
    if (edits != nullptr) edits[index(row, column)] = edit;
  }
}

int32_t BeamEditDistance::set_hypothesis(std::vector<uint32_t> hypothesis) {
  hypothesis_ = std::move(hypothesis);
  const size_t rows = hypothesis_.size();
  lay_out(rows);
  costs_.resize((rows + 1) * stride_);
  scratch_.resize(costs_.size());
  edits_.assign(costs_.size(), Edit::kNone);
  for (int64_t column = 0; column < columns_[0].end; ++column) {
    costs_[index(0, column)] = static_cast<int32_t>(column);
  }
  for (size_t row = 1; row <= rows; ++row) fill_row(row, hypothesis_, costs_, edits_.data());
  return distance_in(costs_);
}

std::vector<Edit> BeamEditDistance::edits() const {
  std::vector<Edit> edits;
  size_t row = hypothesis_.size(), column = reference_.size();
  while (row > 0 || column > 0) {
    const Edit edit = row == 0 ? Edit::kInsert : edits_[index(row, static_cast<int64_t>(column))];
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
  if (kept == reordered.size()) return distance_in(costs_);
  const auto start = static_cast<int64_t>(kept * stride_);
  std::copy_n(costs_.begin() + start, stride_, scratch_.begin() + start);
  for (size_t row = kept + 1; row <= reordered.size(); ++row) {
    fill_row(row, reordered, scratch_, nullptr);
  }
  return distance_in(scratch_);
}

}  // namespace attend
