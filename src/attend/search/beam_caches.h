#pragma once

#include <cstdint>
#include <vector>

#include "attend/models/transformer.h"
#include "attend/search/beam.h"

namespace attend {

/// The decoder's keys and values of one group of sentences. A token's are written once, into a slot
/// of its own, and hypotheses hold the slots of their ancestors. When the slots run out, those that
/// no active hypothesis holds are given up; where that makes too little room, the caches double.
class BeamCaches {
 public:
  BeamCaches(const Transformer& model, Context& context, const EncoderOutput& memory,
             int64_t slots);

  /// Room for one more token of each of `rows` hypotheses. The slots of `beams` may change.
  void reserve(int64_t rows, std::vector<Beam>& beams);
  /// The next free slot, from which a step may write.
  int64_t first_free() const { return used_; }
  void use(int64_t rows) { used_ += rows; }
  std::vector<LayerCache>& layers() { return layers_; }

  int64_t slots() const { return slots_; }

 private:
  void drop_unused(std::vector<Beam>& beams);
  void move_slot(int64_t from, int64_t to);

  const Transformer& model_;
  Context& context_;
  std::vector<LayerCache> layers_;
  int64_t slots_;
  int64_t used_ = 0;
};

}  // namespace attend
