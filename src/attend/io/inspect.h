#pragma once

#include <string>

#include "attend/base/files.h"

namespace attend {

/// What `attend inspect` prints for a model or run directory, a safetensors file or a checkpoint:
/// configuration, tokenizers, metadata, and a table of the tensors with counts and bytes. Throws
/// Error where there is nothing of these at `path` or it is damaged.
std::string inspect(const Path& path);

}  // namespace attend
