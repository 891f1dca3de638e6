#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "attend/base/files.h"
#include "attend/io/safetensors.h"

namespace attend {

/// How the tensors of a checkpoint are named: one of these and the weight's name.
inline constexpr std::string_view kWeightsPrefix = "weights/";
inline constexpr std::string_view kAdamMeanPrefix = "adam_m/";
inline constexpr std::string_view kAdamVariancePrefix = "adam_v/";
inline constexpr std::string_view kAveragePrefix = "ema/";  ///< the exponential moving average

/// A checkpoint on disk, not yet opened.
struct CheckpointFile {
  int64_t step = 0;
  Path path;
};

/// An opened checkpoint whose data has the checksums that it was written with.
struct Checkpoint {
  int64_t step = 0;
  nlohmann::json state;  ///< what the caller saved
  SafetensorsFile file;  ///< the tensors, to be read one by one
};

/// `checkpoints/step-00001234.safetensors` in the run directory.
Path checkpoint_path(const Path& run_directory, int64_t step);

/// Writes one checkpoint, complete or absent. `state` is opaque here, at most 16 MiB of JSON (which
/// has no NaN or infinity: they come back as null). `metadata`, that of model_metadata(), says
/// which model it is of. Checkpoints of later steps, which a run that saves this one was not able
/// to use, are renamed to `*.damaged` with a warning.
void save_checkpoint(const Path& run_directory, int64_t step, const NamedTensors& tensors,
                     const nlohmann::json& state,
                     const std::map<std::string, std::string>& metadata = {});

/// By step, the oldest first. A missing folder is an empty list.
std::vector<CheckpointFile> list_checkpoints(const Path& run_directory);

/// Whether a safetensors file says that it is a checkpoint.
bool is_checkpoint(const SafetensorsFile& file);

/// Opens a checkpoint and reads all of it against its checksums. Throws Error.
Checkpoint load_checkpoint(const Path& path);

/// The newest checkpoint that is whole. One that is not is named in a warning with what is wrong,
/// and the one before is tried (contract 13). Nothing when the run has none. Throws Error when it
/// has some and none can be read, or the newest is in the format of a later version (contract 20).
std::optional<Checkpoint> load_latest_checkpoint(const Path& run_directory);

/// Removes all but the newest `keep_last` and those of the steps `keep`.
void prune_checkpoints(const Path& run_directory, int64_t keep_last,
                       const std::set<int64_t>& keep = {});

}  // namespace attend
