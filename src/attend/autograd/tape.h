#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "attend/autograd/parameter.h"
#include "attend/autograd/regularization.h"
#include "attend/kernels/dropout.h"
#include "attend/tensor/memory.h"
#include "attend/tensor/tensor.h"

namespace attend {

/// A value of the forward pass and, later, the gradient of the loss with respect to it. Copying
/// copies a handle.
class Variable {
 public:
  Variable() = default;
  /// gradient_dtype: that of the op that will read the gradient.
  Variable(Tensor value, DType gradient_dtype);

  bool defined() const { return node_ != nullptr; }
  bool is(const Variable& other) const { return node_ == other.node_; }
  const Tensor& value() const { return node_->value; }
  /// Undefined while nothing has flowed back.
  const Tensor& gradient() const { return node_->gradient; }
  /// Lets the value go: the backward pass does not need it.
  void drop_value() const { node_->value = Tensor(); }

  /// Where an op puts its part of the gradient: the tensor and whether to add to what is there.
  struct Sink {
    Tensor tensor;
    bool accumulate;
  };
  Sink gradient_sink(MemoryPool& memory) const;
  /// Takes over `gradient` as this variable's, or adds it to what is there.
  void give_gradient(const Tensor& gradient) const;

 private:
  struct Node {
    Tensor value;
    Tensor gradient;
    DType gradient_dtype = DType::kFloat32;
    Shape shape;
  };
  std::shared_ptr<Node> node_;
};

/// What was computed, in order, so that the gradients can flow back. One a lane; used by one
/// thread.
class Tape {
 public:
  explicit Tape(int32_t lane = 0) : lane_(lane) {}

  int32_t lane() const { return lane_; }
  /// `backward` runs when the tape is played back; what it holds is released right after.
  void record(const char* name, std::function<void()> backward);
  /// Announces that a dense gradient of the parameter will be added once more in the backward pass.
  void announce(Parameter& parameter) { ++pending_[&parameter]; }
  /// Runs `add`, which adds to parameter.gradient, in the lane's turn.
  void add_gradient(Parameter& parameter, const std::function<void()>& add);
  void add_sparse_gradient(Parameter& parameter, SparseGradient gradient) const;
  /// Plays the tape back, last op first.
  void backward();
  /// Hands on the turn of every parameter that this lane did not touch.
  void finish(ParameterSet& parameters) const;

 private:
  struct Entry {
    const char* name;
    std::function<void()> backward;
  };
  int32_t lane_;
  std::vector<Entry> entries_;
  std::unordered_map<Parameter*, int> pending_;
};

/// How a forward pass runs. The same model code trains (tape and dropout), validates and decodes.
struct Context {
  Tape* tape = nullptr;  ///< null: nothing is recorded
  MemoryPool* memory = &MemoryPool::global();
  DType compute = DType::kFloat32;  ///< of matrix operands
  bool training = false;            ///< dropout on
  bool recompute = false;           ///< keep layers' inputs alone and run each again backwards
  Regularization regularization;    ///< of training
  RandomKey random;                 ///< `op` counts the ops that drew

  /// Dropout for the next op: the rate when training, else none.
  Dropout dropout(float rate);
  /// The same, drawn alike in all lanes of an update.
  Dropout common_dropout(float rate);
  Tensor tensor(Shape shape, DType dtype) const { return {std::move(shape), dtype, *memory}; }
};

}  // namespace attend
