#include "attend/train/shares.h"

#include <algorithm>

namespace attend {
namespace {

/// Elements that one worker sweeps, or one message carries, at a time. Sums of squares are made
/// piece by piece, so that this, and not the number of workers, decides their rounding.
constexpr int64_t kLargestPiece = int64_t{1} << 16;
constexpr int64_t kAligned = 16;  // a cache line
/// A small model is cut finer, so that every rank has some pieces.
constexpr int64_t kPiecesPerRank = 4;

int64_t choose_piece_size(int64_t flat_size, int ranks) {
  if (ranks == 1) return kLargestPiece;
  const int64_t wanted = flat_size / (kPiecesPerRank * ranks);
  return std::clamp((wanted + kAligned - 1) / kAligned * kAligned, kAligned, kLargestPiece);
}

}  // namespace

Shares::Shares(int64_t flat_size, int rank, int ranks)
    : flat_size_(flat_size),
      rank_(rank),
      ranks_(ranks),
      piece_size_(choose_piece_size(flat_size, ranks)) {
  for (int64_t piece = rank; piece < pieces(); piece += ranks) share_size_ += size(piece);
}

int64_t Shares::end(int64_t piece) const { return std::min(flat_size_, begin(piece + 1)); }

Tensor Shares::in_flat(const Tensor& flat, int64_t piece) const {
  return flat.slice_columns(begin(piece), end(piece));
}

Tensor Shares::in_share(const Tensor& share, int64_t piece) const {
  const int64_t first = piece / ranks_ * piece_size_;
  return share.slice_columns(first, first + size(piece));
}

}  // namespace attend
