#pragma once

#include <memory>

#include "attend/io/model_directory.h"
#include "attend/models/precision.h"
#include "attend/models/transformer.h"

namespace attend {

/// Gives a model that only runs its weights, float32, bfloat16 or int8 with scales as
/// convert_weights makes them. Throws Error, listing the tensors, where some are missing, are not
/// the model's, or have another shape.
void load_weights(Transformer& model, const SafetensorsFile& weights);

/// A model directory's Transformer, ready to run. Warns where the CPU cannot do what was asked for.
/// for_shortlist: see Transformer::keep_output_rows.
std::shared_ptr<const Transformer> load_model(const ModelFiles& files, InferencePrecision precision,
                                              bool for_shortlist = false);

/// int8 where the file's matrices are, bfloat16 where one is, else float32.
DType stored_dtype(const SafetensorsFile& weights);

/// The model's tensors with its matrices in `dtype`: int8 has a tensor "NAME.scale" beside each,
/// float32 with a number for every row. What is no matrix stays float32.
NamedTensors convert_weights(const ModelFiles& files, DType dtype);

}  // namespace attend
