#include "attend/autograd/recompute.h"

namespace attend {
namespace {

void hand_back(const Stream& from, const Stream& to) {
  if (from.residual.defined() && from.residual.gradient().defined()) {
    to.residual.give_gradient(from.residual.gradient());
  }
  const bool apart = from.operand.defined() && !from.operand.is(from.residual);
  if (apart && from.operand.gradient().defined()) {
    to.operand.give_gradient(from.operand.gradient());
  }
}

}  // namespace

Stream recomputed(Context& context, const Stream& x, const StreamPart& part) {
  if (context.tape == nullptr) return part(context, x);
  Context again = context;  // from where the random numbers of this part begin
  Tape& tape = *context.tape;
  context.tape = nullptr;
  Stream out = part(context, x);
  context.tape = &tape;
  tape.record("recomputing", [again, x, out, part, lane = tape.lane()]() mutable {
    Tape part_tape(lane);
    again.tape = &part_tape;
    hand_back(out, part(again, x));
    out = {};
    part_tape.backward();
  });
  return out;
}

}  // namespace attend
