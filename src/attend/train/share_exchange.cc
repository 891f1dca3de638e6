#include "attend/train/share_exchange.h"

#include <algorithm>

#include "attend/base/profile.h"
#include "attend/kernels/activation.h"
#include "attend/kernels/compute_thread.h"

namespace attend {
namespace {

int tag_of(int round, int64_t piece) {
  return kFirstPieceTag + static_cast<int>(3 * piece) + round;
}

}  // namespace

ShareExchange::ShareExchange(Communicator& ranks, ParameterSet& parameters, const Shares& shares)
    : ranks_(ranks),
      parameters_(parameters),
      shares_(shares),
      contributions_(static_cast<std::size_t>(ranks.size())),
      overlapping_(static_cast<std::size_t>(shares.pieces())) {
  for (int other = 0; other < ranks.size(); ++other) {
    if (other == ranks.rank()) continue;
    contributions_[static_cast<std::size_t>(other)] =
        Tensor({shares.share_size()}, DType::kFloat32);
  }
  for (const Parameter& parameter : parameters.parameters()) {
    const int64_t last = parameter.offset + count_of(parameter.shape) - 1;
    for (int64_t piece = parameter.offset / shares.piece_size();
         piece <= last / shares.piece_size(); ++piece) {
      ++overlapping_[static_cast<std::size_t>(piece)];
    }
  }
  thread_ = std::thread([this] {
    prepare_compute_thread();
    work();
  });
}

ShareExchange::~ShareExchange() {
  cancel();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

RequestPtr ShareExchange::send(int to, Round round, int64_t piece, const Tensor& numbers) const {
  return ranks_.send(to, tag_of(static_cast<int>(round), piece), numbers.raw(),
                     static_cast<std::size_t>(numbers.bytes()));
}

RequestPtr ShareExchange::receive(int from, Round round, int64_t piece,
                                  const Tensor& numbers) const {
  return ranks_.receive(from, tag_of(static_cast<int>(round), piece), numbers.raw(),
                        static_cast<std::size_t>(numbers.bytes()));
}

void ShareExchange::begin(Round round) {
  {
    const std::lock_guard lock(mutex_);
    round_ = round;
    incomplete_ = overlapping_;
    told_.assign(overlapping_.size(), false);
    fresh_.clear();
    failure_ = nullptr;
    cancelled_ = false;
    active_ = true;
  }
  wake_.notify_all();
}

void ShareExchange::begin_reduction() { begin(Round::kReduction); }

void ShareExchange::begin_gather(const Tensor& flat) {
  gathered_ = flat;
  begin(Round::kGather);
}

void ShareExchange::set_ready(int64_t piece) {
  if (told_[static_cast<std::size_t>(piece)]) return;
  told_[static_cast<std::size_t>(piece)] = true;
  fresh_.push_back(piece);
}

void ShareExchange::gradient_complete(const Parameter& parameter) {
  const int64_t last = parameter.offset + count_of(parameter.shape) - 1;
  bool some = false;
  {
    const std::lock_guard lock(mutex_);
    for (int64_t piece = parameter.offset / shares_.piece_size();
         piece <= last / shares_.piece_size(); ++piece) {
      if (--incomplete_[static_cast<std::size_t>(piece)] > 0) continue;
      set_ready(piece);
      some = true;
    }
  }
  if (some) wake_.notify_all();
}

void ShareExchange::piece_ready(int64_t piece) {
  {
    const std::lock_guard lock(mutex_);
    set_ready(piece);
  }
  wake_.notify_all();
}

void ShareExchange::finish() {
  std::unique_lock lock(mutex_);
  for (int64_t piece = shares_.pieces() - 1; piece >= 0; --piece) set_ready(piece);
  wake_.notify_all();
  done_.wait(lock, [this] { return !active_; });
  if (failure_) std::rethrow_exception(failure_);
}

void ShareExchange::finish_reduction() {
  const ProfileScope scope("wait for gradients of other ranks");
  finish();
}

void ShareExchange::finish_gather() {
  const ProfileScope scope("wait for weights of other ranks");
  finish();
}

std::exception_ptr ShareExchange::cancel() {
  std::unique_lock lock(mutex_);
  cancelled_ = true;
  wake_.notify_all();
  done_.wait(lock, [this] { return !active_; });
  return failure_;
}

void ShareExchange::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || active_; });
    if (stopping_) return;
    lock.unlock();
    std::exception_ptr failure;
    try {
      run_round();
    } catch (...) {
      failure = std::current_exception();
      parameters_.cancel_step();  // the lanes need not go on
    }
    pieces_.clear();  // gives up what a failure has left under way
    lock.lock();
    failure_ = failure;
    active_ = false;
    done_.notify_all();
  }
}

void ShareExchange::run_round() {
  pieces_.clear();
  pieces_.resize(static_cast<std::size_t>(shares_.pieces()));
  std::vector<int64_t> open;
  post_receives(open);
  Patience patience;
  while (!open.empty()) {
    std::vector<int64_t> fresh;
    {
      std::unique_lock lock(mutex_);
      if (cancelled_) return;
      fresh.swap(fresh_);
    }
    for (const int64_t piece : fresh) start_sends(piece);
    if (test(open) || !fresh.empty()) {
      patience.reset();
      continue;
    }
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, patience.next_rest(), [this] { return cancelled_ || !fresh_.empty(); });
  }
}

/// And lists the pieces in the order in which they are likely to be complete: the backward pass
/// comes to the last parameters first.
void ShareExchange::post_receives(std::vector<int64_t>& open) {
  for (int64_t piece = shares_.pieces() - 1; piece >= 0; --piece) {
    open.push_back(piece);
    Piece& state = pieces_[static_cast<std::size_t>(piece)];
    if (round_ == Round::kGather) {
      if (shares_.is_mine(piece)) continue;
      state.ready = true;
      state.requests.push_back(
          receive(shares_.owner(piece), round_, piece, shares_.in_flat(gathered_, piece)));
    } else if (shares_.is_mine(piece)) {
      for (int other = 0; other < shares_.ranks(); ++other) {
        if (other == shares_.rank()) continue;
        const Tensor& share = contributions_[static_cast<std::size_t>(other)];
        state.requests.push_back(receive(other, round_, piece, shares_.in_share(share, piece)));
      }
    }
  }
}

void ShareExchange::start_sends(int64_t piece) {
  Piece& state = pieces_[static_cast<std::size_t>(piece)];
  if (round_ == Round::kReduction) {
    if (!shares_.is_mine(piece)) {
      const Tensor gradient = shares_.in_flat(parameters_.flat_gradient(), piece);
      state.requests.push_back(send(shares_.owner(piece), round_, piece, gradient));
    }
  } else if (shares_.is_mine(piece)) {
    for (int other = 0; other < shares_.ranks(); ++other) {
      if (other == shares_.rank()) continue;
      state.requests.push_back(send(other, round_, piece, shares_.in_flat(gathered_, piece)));
    }
  }
  state.ready = true;
}

/// Drops what is done from `open`; says whether anything was.
bool ShareExchange::test(std::vector<int64_t>& open) {
  // One look moves all transfers along, also where the piece here is not ready yet, and they end in
  // about this order.
  constexpr int kLooks = 16;
  int in_vain = 0;
  const auto is_done = [&](int64_t piece) {
    Piece& state = pieces_[static_cast<std::size_t>(piece)];
    if (in_vain >= kLooks) return false;
    while (!state.requests.empty() && state.requests.back()->done()) state.requests.pop_back();
    if (!state.requests.empty()) {
      ++in_vain;
      return false;
    }
    if (!state.ready) return false;
    complete(piece);
    return true;
  };
  return std::erase_if(open, is_done) > 0;
}

void ShareExchange::complete(int64_t piece) {
  if (round_ == Round::kReduction && shares_.is_mine(piece)) add_contributions(piece);
}

void ShareExchange::add_contributions(int64_t piece) {
  const ProfileScope scope("add gradients of other ranks");
  const Tensor sum = shares_.in_flat(parameters_.flat_gradient(), piece);
  const auto given = [&](int rank) {
    return shares_.in_share(contributions_[static_cast<std::size_t>(rank)], piece);
  };
  // The ranks before this one are added up where the first one's part is; a + b is b + a.
  for (int rank = 1; rank < shares_.rank(); ++rank) convert(given(rank), given(0), true);
  if (shares_.rank() > 0) convert(given(0), sum, true);
  for (int rank = shares_.rank() + 1; rank < shares_.ranks(); ++rank) {
    convert(given(rank), sum, true);
  }
}

}  // namespace attend
