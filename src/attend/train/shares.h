#pragma once

#include <cstdint>

#include "attend/tensor/tensor.h"

namespace attend {

/// How the flat tensors of a model are cut into pieces and dealt out to the ranks in turn: piece p
/// belongs to rank p mod ranks, which sums its gradient, keeps its optimizer's state and updates
/// its weights. Small pieces in turn, so that every rank has work from the first gradients to the
/// last. A rank's share is its pieces end to end.
///
/// Alone a rank has all, and its share is laid out as the flat tensors.
class Shares {
 public:
  Shares(int64_t flat_size, int rank, int ranks);

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  int64_t pieces() const { return (flat_size_ + piece_size_ - 1) / piece_size_; }
  int64_t piece_size() const { return piece_size_; }  ///< the last one may be shorter
  int64_t begin(int64_t piece) const { return piece * piece_size_; }
  int64_t end(int64_t piece) const;
  int64_t size(int64_t piece) const { return end(piece) - begin(piece); }
  int owner(int64_t piece) const { return static_cast<int>(piece % ranks_); }
  bool is_mine(int64_t piece) const { return owner(piece) == rank_; }
  /// Elements of this rank's share.
  int64_t share_size() const { return share_size_; }

  /// A piece of a tensor that is laid out as the flat ones.
  Tensor in_flat(const Tensor& flat, int64_t piece) const;
  /// A piece of this rank's own in a tensor that holds its share.
  Tensor in_share(const Tensor& share, int64_t piece) const;

 private:
  int64_t flat_size_;
  int rank_;
  int ranks_;
  int64_t piece_size_;
  int64_t share_size_ = 0;
};

}  // namespace attend
