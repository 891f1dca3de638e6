#include "attend/train/follower.h"

#include "attend/base/error.h"
#include "attend/train/bench.h"
#include "attend/train/engine.h"
#include "attend/train/rank_messages.h"

namespace attend {
namespace {

/// Contract 24 lets one process fall back to float32; among ranks it would change the others' sums.
void check_precision(DType compute) {
  if (compute != DType::kBFloat16 || choose_precision(Precision::kBFloat16) == compute) return;
  fail("rank 0 computes in bfloat16, which this CPU does not multiply; give --precision float32");
}

}  // namespace

void set_up_followers(Communicator& ranks, const TrainOptions& options, DType compute,
                      int64_t workers) {
  send_to_all(ranks, set_up_message({options, compute, workers}));
}

void follow(Communicator& ranks) {
  Message message = receive_message(ranks, 0);
  if (message.get<RankCommand>() == RankCommand::kEnd) return;
  const RankSetUp set_up = get_set_up(message);
  check_precision(set_up.compute);
  Transformer model(set_up.options.model, set_up.compute, true);
  Engine engine(model, set_up.options, resolve_workers(set_up.workers), &ranks);
  engine.follow();
}

void end_followers(Communicator& ranks) { send_to_all(ranks, message_of(RankCommand::kEnd)); }

}  // namespace attend
