#include "attend/search/beam_caches.h"

#include <algorithm>
#include <limits>

#include "attend/base/error.h"
#include "attend/base/profile.h"
#include "attend/kernels/activation.h"

namespace attend {

BeamCaches::BeamCaches(const Transformer& model, Context& context, const EncoderOutput& memory,
                       int64_t slots)
    : model_(model),
      context_(context),
      layers_(model.make_caches(context, memory, slots)),
      slots_(slots) {}

void BeamCaches::reserve(int64_t rows, std::vector<Beam>& beams) {
  if (used_ + rows <= slots_) return;
  const ProfileScope scope("cache slots");
  drop_unused(beams);
  // Half of them free, or the next time comes soon.
  if (2 * (used_ + rows) <= slots_) return;
  slots_ = std::max(2 * slots_, 2 * (used_ + rows));
  if (slots_ > std::numeric_limits<int32_t>::max()) {
    fail("a search needs more than 2^31 tokens at once; use a smaller beam_size or batch_tokens");
  }
  model_.grow_caches(context_, layers_, slots_);
}

void BeamCaches::drop_unused(std::vector<Beam>& beams) {
  std::vector<int32_t> new_slots(static_cast<std::size_t>(used_), -1);
  for (const Beam& beam : beams) {
    for (const ActiveHypothesis& hypothesis : beam.active()) {
      for (const int32_t slot : hypothesis.slots) new_slots[static_cast<std::size_t>(slot)] = 0;
    }
  }
  int32_t kept = 0;
  for (int32_t slot = 0; slot < used_; ++slot) {
    if (new_slots[static_cast<std::size_t>(slot)] < 0) continue;
    if (slot != kept) move_slot(slot, kept);
    new_slots[static_cast<std::size_t>(slot)] = kept++;
  }
  for (Beam& beam : beams) {
    for (ActiveHypothesis& hypothesis : beam.active()) {
      for (int32_t& slot : hypothesis.slots) slot = new_slots[static_cast<std::size_t>(slot)];
    }
  }
  used_ = kept;
}

void BeamCaches::move_slot(int64_t from, int64_t to) {
  for (const LayerCache& layer : layers_) {
    for (const Tensor& part : {layer.self.keys, layer.self.values}) {
      convert(part.slice_rows(from, from + 1), part.slice_rows(to, to + 1));
    }
  }
}

}  // namespace attend
