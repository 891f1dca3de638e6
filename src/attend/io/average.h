#pragma once

#include <vector>

#include "attend/base/files.h"
#include "attend/io/safetensors.h"

namespace attend {

/// The mean of the weights of several models, summed in float64, as float32. A path is a model or
/// run directory, a weights file, or a checkpoint (its moving average where it has one, else its
/// weights). Throws Error, naming the two files and the difference, where names, shapes,
/// configurations or tokenizers differ; of the latter two, where the files say what they are.
NamedTensors average_models(const std::vector<Path>& paths);

}  // namespace attend
