#include "attend/train/rank_messages.h"

#include <cmath>

#include "attend/base/version.h"
#include "attend/tensor/tensor.h"

namespace attend {
namespace {

void put_sequences(Message& message, const Sequences& sequences) {
  message.put(sequences.tokens);
  message.put(sequences.offsets);
}

Sequences get_sequences(Message& message) {
  Sequences sequences;
  sequences.tokens = message.get_vector<int32_t>();
  sequences.offsets = message.get_vector<int64_t>();
  return sequences;
}

int64_t cost_of(const Lane& lane) {
  return std::ssize(lane.source.tokens) + std::ssize(lane.target_output);
}

}  // namespace

Message message_of(RankCommand command) {
  Message message;
  message.put(command);
  return message;
}

void send_to_all(Communicator& ranks, const Message& message) {
  for (int other = 1; other < ranks.size(); ++other) send_message(ranks, other, message);
}

void put_lanes(Message& message, std::span<const Lane* const> lanes) {
  message.put(lanes.size());
  for (const Lane* lane : lanes) {
    put_sequences(message, lane->source);
    put_sequences(message, lane->target_input);
    message.put(lane->target_output);
  }
}

std::vector<Lane> get_lanes(Message& message) {
  std::vector<Lane> lanes(message.get<std::size_t>());
  for (Lane& lane : lanes) {
    lane.source = get_sequences(message);
    lane.target_input = get_sequences(message);
    lane.target_output = message.get_vector<int32_t>();
  }
  return lanes;
}

std::vector<std::size_t> deal_lanes(std::span<const Lane* const> lanes, int ranks) {
  int64_t total = 0;
  for (const Lane* lane : lanes) total += cost_of(*lane);
  std::vector<std::size_t> bounds{0};
  int64_t before = 0;  // the cost of lanes [0, at)
  std::size_t at = 0;
  for (int rank = 1; rank < ranks; ++rank) {
    const int64_t wanted = total * rank / ranks;
    // A lane is on this side where more of it is than on the other.
    while (at < lanes.size() && before + cost_of(*lanes[at]) / 2 < wanted) {
      before += cost_of(*lanes[at++]);
    }
    bounds.push_back(at);
  }
  bounds.push_back(lanes.size());
  return bounds;
}

Message set_up_message(const RankSetUp& set_up) {
  const TrainOptions& options = set_up.options;
  Message message = message_of(RankCommand::kSetUp);
  message.put(std::string(kVersion));
  message.put(to_json(options.model));
  message.put(set_up.compute);
  message.put(set_up.workers);
  message.put(options.seed);
  message.put(options.optimizer);
  message.put(options.recompute);
  message.put(options.regularization);
  for (const double number : {options.adam_beta1, options.adam_beta2, options.adam_epsilon,
                              options.weight_decay, options.clip_norm, options.ema}) {
    message.put(number);
  }
  return message;
}

RankSetUp get_set_up(Message& message) {
  const std::string version = message.get_text();
  if (version != kVersion) {
    fail("this is attend {}, and rank 0 runs attend {}; install one version on all machines",
         kVersion, version);
  }
  RankSetUp set_up;
  TrainOptions& options = set_up.options;
  options.model = config_from_json(message.get_text(), "the model of rank 0");
  set_up.compute = message.get<DType>();
  set_up.workers = message.get<int64_t>();
  options.seed = message.get<uint64_t>();
  options.optimizer = message.get<OptimizerKind>();
  options.recompute = message.get<bool>();
  options.regularization = message.get<Regularization>();
  for (double* number : {&options.adam_beta1, &options.adam_beta2, &options.adam_epsilon,
                         &options.weight_decay, &options.clip_norm, &options.ema}) {
    *number = message.get<double>();
  }
  return set_up;
}

}  // namespace attend
