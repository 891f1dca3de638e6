#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "attend/base/random.h"
#include "attend/kernels/packed_matrix.h"
#include "attend/tensor/tensor.h"

namespace attend {

/// Fills a parameter's first values, float32, row by row.
using Initializer = std::function<void(std::vector<float>& values, RandomGenerator& random)>;
Initializer constant(float value);
/// Glorot & Bengio 2010: uniform in ±√(6 / (fan_in + fan_out)).
Initializer xavier_uniform(int64_t fan_in, int64_t fan_out);
Initializer normal(float standard_deviation);

/// Rows of a gradient of which most are zero: row i belongs to row ids[i] of the parameter, times
/// scale and, where there are factors, factors[i].
struct SparseGradient {
  std::vector<int32_t> ids;
  Tensor rows;  ///< float32 [ids, columns]
  float scale = 1.0F;
  std::vector<float> factors = {};
};

/// What a model that only runs does with a parameter.
enum class ParameterUse {
  kPlain,            ///< reads its numbers
  kProduct,          ///< multiplies by it
  kTable,            ///< looks up rows
  kTableAndProduct,  ///< both: tied embeddings
};

/// A parameter as a file holds it: float32, or int8 with a scale for every row.
struct StoredWeight {
  Tensor values;
  Tensor scales;  ///< undefined unless int8
};

Tensor as_float32(const StoredWeight& stored);
QuantizedMatrix as_int8(const StoredWeight& stored);

class Parameter;
/// Reads a parameter's numbers.
using WeightReader = std::function<StoredWeight(const Parameter&)>;

/// Hears of gradients that are complete while the lanes of a step still run, on the thread of the
/// lane that added last.
class GradientListener {
 public:
  virtual void gradient_complete(const Parameter& parameter) = 0;

 protected:
  ~GradientListener() = default;
};

/// A weight: float32 master values, their copy in the compute dtype (the same tensor in float32)
/// and the one gradient that all workers add to.
///
/// The lanes of a step add to the gradient in the order of their numbers, whoever runs them: lane n
/// waits for its turn, adds, and hands the turn to lane n + 1. So the sum is the same for any
/// number of workers, and no worker needs a gradient buffer of its own.
class Parameter {
 public:
  std::string name;
  Shape shape;
  Initializer initializer;
  ParameterUse use = ParameterUse::kPlain;
  int64_t offset = 0;  ///< of the first element in the flat buffers
  Tensor master;
  Tensor compute;
  Tensor gradient;
  /// Of a model that only runs, in place of the above: what it multiplies by, and, in int8, the
  /// table.
  std::shared_ptr<const PackedMatrix> packed;
  QuantizedMatrix quantized;
  /// What embedding lookups leave, one list a lane; added to the gradient when the step ends.
  std::vector<std::vector<SparseGradient>> sparse;

  /// Blocks until it is the lane's turn, without spinning. Throws Error when the step is cancelled.
  void wait_for_turn(int32_t lane);
  void pass_turn(int32_t lane);
  bool turn_passed(int32_t lane) const { return turn_.load(std::memory_order_acquire) > lane; }
  /// Says that the step will leave sparse gradients, so that the last turn does not complete it.
  void expect_sparse() { sparse_expected_.store(true, std::memory_order_relaxed); }
  void begin_step(int32_t lanes, GradientListener* listener);
  /// Wakes every waiting lane with an Error: one worker has failed.
  void cancel_step();

 private:
  std::atomic<int32_t> turn_ = 0;
  std::atomic<bool> sparse_expected_ = false;
  int32_t lanes_ = 0;
  GradientListener* listener_ = nullptr;
};

/// All weights of a model, laid end to end in flat buffers, so that the optimizer sweeps over one
/// array and a checkpoint is a few tensors.
class ParameterSet {
 public:
  Parameter& add(std::string name, Shape shape, Initializer initializer,
                 ParameterUse use = ParameterUse::kPlain);
  /// Allocates the buffers and binds every parameter's views. Call once, after the last add().
  void allocate(DType compute, bool with_gradients);
  /// Instead of allocate(), for a model that only runs: reads every parameter once and keeps it in
  /// the form in which it is used, products packed in `dtype`. Nothing else stays in memory.
  void load(const WeightReader& read, DType dtype);
  /// Draws all initial values from `seed`; each parameter's depend on its name's order alone.
  void initialize(uint64_t seed);
  /// Copies the master values into the compute copies (nothing to do in float32).
  void refresh_compute();
  /// Exchanges the master values with those of `flat` (laid out as flat_master()), compute copies
  /// included.
  void swap_master(const Tensor& flat);

  std::deque<Parameter>& parameters() { return parameters_; }
  const std::deque<Parameter>& parameters() const { return parameters_; }
  /// The parameter of that name; throws Error where there is none.
  Parameter& find(const std::string& name);
  int64_t weight_count() const;  ///< numbers that are learned, padding not counted

  /// float32 [flat_size()]; the compute copy is undefined in float32.
  const Tensor& flat_master() const { return master_; }
  const Tensor& flat_compute() const { return compute_; }
  const Tensor& flat_gradient() const { return gradient_; }
  int64_t flat_size() const { return flat_size_; }
  /// A view of `flat` (a tensor laid out as flat_master) for each parameter, by name.
  std::vector<std::pair<std::string, Tensor>> views(const Tensor& flat) const;

  /// `listener`, where there is one, hears of each dense gradient when the last of `lanes` has
  /// added to it. Gradients with sparse parts are complete after add_sparse_gradients().
  void begin_step(int32_t lanes, GradientListener* listener = nullptr);
  void cancel_step();
  /// Adds the sparse gradients of every table, in lane order, in the `part`-th of `parts` equal
  /// shares of its rows: workers can take one each, and the sums do not depend on how many.
  void add_sparse_gradients(int64_t part, int64_t parts);

 private:
  std::deque<Parameter> parameters_;
  int64_t flat_size_ = 0;
  Tensor master_, compute_, gradient_;
};

}  // namespace attend
