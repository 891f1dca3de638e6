#include "attend/autograd/tape.h"

#include <limits>

#include "attend/base/error.h"
#include "attend/base/profile.h"
#include "attend/kernels/activation.h"

namespace attend {

Variable::Variable(Tensor value, DType gradient_dtype) : node_(std::make_shared<Node>()) {
  node_->shape = value.shape();
  node_->value = std::move(value);
  node_->gradient_dtype = gradient_dtype;
}

Variable::Sink Variable::gradient_sink(MemoryPool& memory) const {
  const bool accumulate = node_->gradient.defined();
  if (!accumulate) node_->gradient = Tensor(node_->shape, node_->gradient_dtype, memory);
  return {node_->gradient, accumulate};
}

void Variable::give_gradient(const Tensor& gradient) const {
  if (node_->gradient.defined()) {
    convert(gradient, node_->gradient, true);
  } else {
    node_->gradient = gradient;
  }
}

void Tape::record(const char* name, std::function<void()> backward) {
  entries_.push_back({name, std::move(backward)});
}

void Tape::add_gradient(Parameter& parameter, const std::function<void()>& add) {
  parameter.wait_for_turn(lane_);
  add();
  if (--pending_.at(&parameter) == 0) parameter.pass_turn(lane_);
}

void Tape::add_sparse_gradient(Parameter& parameter, SparseGradient gradient) const {
  parameter.sparse.at(static_cast<std::size_t>(lane_)).push_back(std::move(gradient));
}

void Tape::backward() {
  while (!entries_.empty()) {
    const Entry entry = std::move(entries_.back());
    entries_.pop_back();
    const ProfileScope scope(entry.name);
    entry.backward();
  }
}

void Tape::finish(ParameterSet& parameters) const {
  for (Parameter& parameter : parameters.parameters()) {
    if (parameter.turn_passed(lane_)) continue;
    parameter.wait_for_turn(lane_);
    parameter.pass_turn(lane_);
  }
}

Dropout Context::dropout(float rate) {
  if (!training || rate <= 0.0F) return {};
  return {rate, {random.seed, random.lane, random.op++}};
}

Dropout Context::common_dropout(float rate) {
  constexpr uint32_t kAllLanes = std::numeric_limits<uint32_t>::max();  // the number of no lane
  Dropout drawn = dropout(rate);
  drawn.key.lane = kAllLanes;
  return drawn;
}

}  // namespace attend
