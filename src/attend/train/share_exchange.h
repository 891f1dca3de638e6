#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "attend/autograd/parameter.h"
#include "attend/comm/communicator.h"
#include "attend/train/shares.h"

namespace attend {

/// Moves pieces of flat tensors between the ranks on a thread of its own, which sleeps while there
/// is nothing to move: gradients to their owners while the lanes still run, weights from their
/// owners to all.
///
/// The owner of a piece adds what the ranks send in the order of the ranks, in float32, whenever it
/// arrives: the sum depends on the number of ranks and on nothing else. One buffer the size of the
/// gradient holds what has arrived (less, by this rank's own share of it).
class ShareExchange final : public GradientListener {
 public:
  ShareExchange(Communicator& ranks, ParameterSet& parameters, const Shares& shares);
  ShareExchange(const ShareExchange&) = delete;
  ShareExchange& operator=(const ShareExchange&) = delete;
  ~ShareExchange();

  /// Begins the sum of a step's gradients. They move as they are complete.
  void begin_reduction();
  void gradient_complete(const Parameter& parameter) override;
  /// Says that all of this rank's gradients are complete, and returns when the pieces that this
  /// rank owns hold the sums of all ranks and the others may be written over. Throws what went
  /// wrong meanwhile.
  void finish_reduction();

  /// Begins to give everybody all of `flat`, whose pieces their owners have.
  void begin_gather(const Tensor& flat);
  void piece_ready(int64_t piece);  ///< one of this rank's own
  /// Says that all own pieces are ready, and returns when the others' are here.
  void finish_gather();

  /// Stops what is under way, after a failure. The failure of the exchange itself, if there is one.
  std::exception_ptr cancel();

  /// Rank 0 gives all ranks their pieces of `flat`; `mine` says where a rank puts a piece of its
  /// own. Rank 0 has to put its own there, too.
  template <typename PlaceOf>
  void scatter(const Tensor& flat, const PlaceOf& mine);
  /// The other way round: `flat` is filled on rank 0.
  template <typename PlaceOf>
  void collect(const Tensor& flat, const PlaceOf& mine);

 private:
  enum class Round { kReduction, kGather, kState };
  struct Piece {
    std::vector<RequestPtr> requests;
    bool ready = false;
  };

  void begin(Round round);
  void finish();
  void set_ready(int64_t piece);  ///< with the mutex held
  void work();
  void run_round();
  void post_receives(std::vector<int64_t>& open);
  void start_sends(int64_t piece);
  bool test(std::vector<int64_t>& open);
  void complete(int64_t piece);
  void add_contributions(int64_t piece);
  RequestPtr send(int to, Round round, int64_t piece, const Tensor& numbers) const;
  RequestPtr receive(int from, Round round, int64_t piece, const Tensor& numbers) const;

  Communicator& ranks_;
  ParameterSet& parameters_;
  const Shares& shares_;
  std::vector<Tensor> contributions_;  ///< a share from each other rank
  std::vector<int32_t> overlapping_;   ///< parameters that have elements in a piece
  Tensor gathered_;

  // Of the thread, while a round runs.
  Round round_ = Round::kReduction;
  std::vector<Piece> pieces_;

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::vector<int32_t> incomplete_;  ///< of overlapping_, still
  std::vector<bool> told_;           ///< pieces that are ready
  std::vector<int64_t> fresh_;       ///< those of them that the thread has not seen
  bool active_ = false;
  bool cancelled_ = false;
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

template <typename PlaceOf>
void ShareExchange::scatter(const Tensor& flat, const PlaceOf& mine) {
  std::vector<RequestPtr> requests;
  for (int64_t piece = 0; piece < shares_.pieces(); ++piece) {
    const int owner = shares_.owner(piece);
    if (ranks_.rank() == 0 && owner != 0) {
      requests.push_back(send(owner, Round::kState, piece, shares_.in_flat(flat, piece)));
    } else if (ranks_.rank() != 0 && owner == ranks_.rank()) {
      requests.push_back(receive(0, Round::kState, piece, mine(piece)));
    }
  }
  wait_all(requests);
}

template <typename PlaceOf>
void ShareExchange::collect(const Tensor& flat, const PlaceOf& mine) {
  std::vector<RequestPtr> requests;
  for (int64_t piece = 0; piece < shares_.pieces(); ++piece) {
    const int owner = shares_.owner(piece);
    if (ranks_.rank() == 0 && owner != 0) {
      requests.push_back(receive(owner, Round::kState, piece, shares_.in_flat(flat, piece)));
    } else if (ranks_.rank() != 0 && owner == ranks_.rank()) {
      requests.push_back(send(0, Round::kState, piece, mine(piece)));
    }
  }
  wait_all(requests);
}

}  // namespace attend
