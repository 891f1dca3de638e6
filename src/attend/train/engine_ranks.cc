// What an engine does with other ranks: rank 0 deals out the work, the others follow.
#include "attend/base/profile.h"
#include "attend/kernels/activation.h"
#include "attend/train/engine.h"
#include "attend/train/rank_messages.h"

namespace attend {
namespace {

/// What each rank found in its part.
struct RankSums {
  LossSums loss;
  double squares = 0;
};

void put_stretch(Message& message, const std::vector<const Lane*>& lanes,
                 const std::vector<std::size_t>& bounds, int rank) {
  const std::size_t first = bounds[static_cast<std::size_t>(rank)];
  const std::size_t last = bounds[static_cast<std::size_t>(rank) + 1];
  message.put(static_cast<int32_t>(first));
  put_lanes(message, std::span(lanes).subspan(first, last - first));
}

std::vector<const Lane*> pointers_to(const std::vector<Lane>& lanes) {
  std::vector<const Lane*> pointers;
  for (const Lane& lane : lanes) pointers.push_back(&lane);
  return pointers;
}

}  // namespace

void Engine::add_up_ranks(LossSums& loss, double& squares) {
  const ProfileScope scope("wait for sums of other ranks");
  const std::vector<RankSums> all = all_gather(*ranks_, RankSums{loss, squares}, kTagSums);
  loss = {};
  squares = 0;
  for (const RankSums& each : all) {
    loss += each.loss;
    squares += each.squares;
  }
}

Engine::Part Engine::deal_update(const Part& all, int64_t step, double rate) {
  ranks_->set_busy(true);
  swap_on_followers();
  const std::vector<std::size_t> bounds = deal_lanes(all.lanes, ranks_->size());
  for (int other = 1; other < ranks_->size(); ++other) {
    Message message = message_of(RankCommand::kUpdate);
    message.put(step);
    message.put(rate);
    message.put(all.tokens);
    put_stretch(message, all.lanes, bounds, other);
    send_message(*ranks_, other, message);
  }
  Part mine = all;
  mine.lanes.resize(bounds[1]);
  return mine;
}

void Engine::follow_update(Message& message) {
  const auto step = message.get<int64_t>();
  const auto rate = message.get<double>();
  Part part;
  part.tokens = message.get<int64_t>();
  part.first_lane = message.get<int32_t>();
  const std::vector<Lane> lanes = get_lanes(message);
  part.lanes = pointers_to(lanes);
  run_update(part, step, rate);
}

std::vector<Engine::Part> Engine::deal_validation(const std::vector<Part>& all) {
  ranks_->set_busy(true);
  swap_on_followers();
  std::vector<Message> messages(static_cast<std::size_t>(ranks_->size()),
                                message_of(RankCommand::kValidate));
  for (Message& message : messages) message.put(all.size());
  std::vector<Part> mine = all;
  for (Part& part : mine) {
    const std::vector<std::size_t> bounds = deal_lanes(part.lanes, ranks_->size());
    for (int other = 1; other < ranks_->size(); ++other) {
      put_stretch(messages[static_cast<std::size_t>(other)], part.lanes, bounds, other);
    }
    part.lanes.resize(bounds[1]);
  }
  for (int other = 1; other < ranks_->size(); ++other) {
    send_message(*ranks_, other, messages[static_cast<std::size_t>(other)]);
  }
  return mine;
}

void Engine::follow_validation(Message& message) {
  const auto batches = message.get<std::size_t>();
  std::vector<std::vector<Lane>> lanes;
  std::vector<Part> parts;
  for (std::size_t batch = 0; batch < batches; ++batch) {
    Part& part = parts.emplace_back();
    part.first_lane = message.get<int32_t>();
    lanes.push_back(get_lanes(message));
    part.lanes = pointers_to(lanes.back());
  }
  run_validation(parts);
}

int64_t Engine::exchange_bytes() const {
  if (ranks_ == nullptr) return 0;
  const int64_t tensors = options_.ema > 0 ? 3 : 2;  // of a checkpoint, and what has arrived
  const int64_t arrived = (shares_.ranks() - 1) * shares_.share_size();
  return (arrived + tensors * weights()) * int64_t{sizeof(float)};
}

void Engine::limit_memory(int64_t bytes_each) {
  if (leads()) {
    Message message = message_of(RankCommand::kLimitMemory);
    message.put(bytes_each);
    send_to_all(*ranks_, message);
  }
  for (const auto& pool : memory_) pool->limit(bytes_each);
}

void Engine::share(const Tensor& flat) {
  exchange_->scatter(flat, [&](int64_t piece) { return shares_.in_flat(flat, piece); });
  exchange_->begin_gather(flat);
  exchange_->finish_gather();
}

void Engine::share_weights() {
  share(model_.parameters().flat_master());
  model_.parameters().refresh_compute();
}

void Engine::take_weights() {
  if (leads()) {
    ranks_->set_busy(true);
    send_to_all(*ranks_, message_of(RankCommand::kTakeWeights));
  }
  if (ranks_ != nullptr) share_weights();
  reset_average();
  if (leads()) ranks_->set_busy(false);
}

/// Calls work(whole tensor, share of it) for each tensor of the state.
template <typename Work>
void Engine::for_state(const OptimizerState& whole, const Work& work) {
  work(whole.first_moment, state_.first_moment);
  work(whole.second_moment, state_.second_moment);
  if (state_.average.defined()) work(whole.average, state_.average);
}

void Engine::share_state(const OptimizerState& whole) {
  for_state(whole, [&](const Tensor& flat, const Tensor& share) {
    exchange_->scatter(flat, [&](int64_t piece) { return shares_.in_share(share, piece); });
    if (!leads()) return;
    for_pieces(true, [&](int64_t piece) {
      convert(shares_.in_flat(flat, piece), shares_.in_share(share, piece));
    });
  });
}

void Engine::collect(const Tensor& flat, const Tensor& share) {
  exchange_->collect(flat, [&](int64_t piece) { return shares_.in_share(share, piece); });
  if (!leads()) return;
  for_pieces(true, [&](int64_t piece) {
    convert(shares_.in_share(share, piece), shares_.in_flat(flat, piece));
  });
}

void Engine::collect_state(const OptimizerState& whole) {
  for_state(whole, [&](const Tensor& flat, const Tensor& share) { collect(flat, share); });
}

OptimizerState Engine::blank_state() const {
  if (ranks_ == nullptr) return state_;
  const Shape flat{model_.parameters().flat_size()};
  OptimizerState whole{
      Tensor::zeros(flat, DType::kFloat32), Tensor::zeros(flat, DType::kFloat32), {}};
  if (state_.average.defined()) whole.average = Tensor::zeros(flat, DType::kFloat32);
  return whole;
}

OptimizerState Engine::gather_state() {
  OptimizerState whole = blank_state();
  if (!leads()) return whole;
  ranks_->set_busy(true);
  send_to_all(*ranks_, message_of(RankCommand::kGiveState));
  collect_state(whole);
  ranks_->set_busy(false);
  return whole;
}

Tensor Engine::gather_average() {
  if (!leads()) return state_.average;
  ranks_->set_busy(true);
  send_to_all(*ranks_, message_of(RankCommand::kGiveAverage));
  const Tensor whole({model_.parameters().flat_size()}, DType::kFloat32);
  collect(whole, state_.average);
  ranks_->set_busy(false);
  return whole;
}

void Engine::restore_state(const OptimizerState& whole) {
  if (!leads()) {
    state_ = whole;
    model_.parameters().refresh_compute();
    return;
  }
  ranks_->set_busy(true);
  send_to_all(*ranks_, message_of(RankCommand::kTakeState));
  share_weights();
  share_state(whole);
  ranks_->set_busy(false);
}

/// The other ranks hear of it where it matters, at the next update or validation: so it cannot
/// fail, whatever has become of them.
void Engine::swap_weights(const Tensor& flat) {
  model_.parameters().swap_master(flat);
  if (swapped_.defined()) {
    swapped_ = Tensor();
  } else {
    swapped_ = flat;
    ++swaps_;
  }
}

void Engine::swap_on_followers() {
  const int64_t wanted = swapped_.defined() ? swaps_ : 0;
  if (followers_swap_ == wanted) return;
  if (followers_swap_ != 0) send_to_all(*ranks_, message_of(RankCommand::kSwapWeights));
  if (wanted != 0) {
    send_to_all(*ranks_, message_of(RankCommand::kSwapWeights));
    share(model_.parameters().flat_master());
  }
  followers_swap_ = wanted;
}

void Engine::follow_swap() {
  const bool back = swapped_.defined();
  if (!back) {
    swapped_ = Tensor({model_.parameters().flat_size()}, DType::kFloat32);
    share(swapped_);
  }
  model_.parameters().swap_master(swapped_);
  if (back) swapped_ = Tensor();
}

void Engine::follow() {
  while (true) {
    Message message = receive_message(*ranks_, 0);
    switch (message.get<RankCommand>()) {
      case RankCommand::kTakeWeights:
        take_weights();
        break;
      case RankCommand::kTakeState:
        share_weights();
        share_state({});
        break;
      case RankCommand::kGiveState:
        collect_state({});
        break;
      case RankCommand::kGiveAverage:
        collect({}, state_.average);
        break;
      case RankCommand::kUpdate:
        follow_update(message);
        break;
      case RankCommand::kValidate:
        follow_validation(message);
        break;
      case RankCommand::kSwapWeights:
        follow_swap();
        break;
      case RankCommand::kLimitMemory:
        limit_memory(message.get<int64_t>());
        break;
      case RankCommand::kSetUp:
        fail("rank 0 set this rank up twice");
      case RankCommand::kEnd:
        return;
    }
  }
}

}  // namespace attend
