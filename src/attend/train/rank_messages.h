#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attend/comm/communicator.h"
#include "attend/data/batches.h"
#include "attend/models/precision.h"
#include "attend/train/options.h"

namespace attend {

/// What rank 0 tells the others to take part in. The first value of each of its messages.
enum class RankCommand : int32_t {
  kSetUp,        ///< build a model and an engine
  kTakeWeights,  ///< rank 0's; the moving average starts from them
  kTakeState,    ///< one's share of the optimizer's state
  kGiveState,    ///< the same, to rank 0
  kGiveAverage,  ///< of that the moving average alone
  kUpdate,       ///< one's part of an update
  kValidate,     ///< one's part of a validation
  kSwapWeights,  ///< validate with others than those that are trained, or with those again
  kLimitMemory,  ///< of a worker
  kEnd,
};

/// What rank 0 sends to all others, the command first.
Message message_of(RankCommand command);
void send_to_all(Communicator& ranks, const Message& message);

void put_lanes(Message& message, std::span<const Lane* const> lanes);
std::vector<Lane> get_lanes(Message& message);

/// Cuts a row of lanes into as many stretches as there are ranks, of nearly equal cost; [i, i + 1)
/// of the bounds returned are rank i's. It depends on the lanes and the number of ranks alone.
std::vector<std::size_t> deal_lanes(std::span<const Lane* const> lanes, int ranks);

/// What the other ranks need to know before the first command: of the options those that a model
/// and an engine are made from. `workers` is as the user gave it: 0 is one a core of each rank's.
struct RankSetUp {
  TrainOptions options;
  DType compute;
  int64_t workers = 0;
};
Message set_up_message(const RankSetUp& set_up);
/// Throws Error where rank 0 is of another version.
RankSetUp get_set_up(Message& message);

}  // namespace attend
