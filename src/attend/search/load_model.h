#pragma once

#include <memory>

#include "attend/io/model_directory.h"
#include "attend/models/precision.h"
#include "attend/models/transformer.h"

namespace attend {

/// Fills the model's weights, master and compute copies, from a file. Throws Error, listing the
/// tensors, where some are missing, are not the model's, or have another shape.
void load_weights(Transformer& model, const SafetensorsFile& weights);

/// A model directory's Transformer, ready to run: no gradients.
std::shared_ptr<const Transformer> load_model(const ModelFiles& files, DType compute);

}  // namespace attend
