#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attend/base/files.h"
#include "attend/models/transformer.h"
#include "attend/train/run_state.h"
#include "attend/train/training_data.h"

namespace attend {

/// The tokenizers of the run in options.run, from its root. Where they are missing or damaged, a
/// warning names them and they are made again from the options: the fingerprint of the data tells
/// whether they are the same. Throws as make_tokenizers.
Tokenizers tokenizers_of_run(const TrainOptions& options, const std::atomic<bool>* stop = nullptr);

/// Whether the root of a run holds a whole model of this shape, all data read against its
/// checksums. A warning says what is wrong where it does not.
bool holds_whole_model(const Path& run, const TransformerConfig& config);

/// Whether a folder has a model and no trace of a run.
bool holds_foreign_model(const Path& folder);

/// recipe.yaml in a run's folder.
Path recipe_path(const Path& run);
/// What the newest checkpoint says of where the run stands; nothing where there is none. Reads no
/// weights: of checkpoints, those are passed over whose beginning is damaged or which were cut off.
std::optional<RunState> state_of_run(const Path& run);
/// The options that the newest checkpoint was written with (TrainHooks::recipe); empty where there
/// is no checkpoint, or one without them, as earlier versions wrote.
std::string recipe_of_checkpoints(const Path& run);
/// Whether recipe.yaml has exactly this text.
bool holds_recipe(const Path& run, const std::string& recipe);
/// Writes recipe.yaml unless it holds the text, or the text is empty.
void write_recipe(const Path& run, const std::string& recipe);

/// A run that has no checkpoint is one that ended before its first, and starts anew. Throws Error
/// where its log says that there were some, so that nothing starts anew over what was trained.
void refuse_lost_checkpoints(const Path& run);

/// Throws Error naming the option where `folder`, or where that is still to be made the first one
/// above it that is there, is none or cannot be written in. Makes nothing.
void refuse_unwritable_folder(std::string_view option, const Path& folder);

/// The mean of the weights of checkpoints (their moving averages where they have them), laid out as
/// ParameterSet::flat_master(). That of one checkpoint is exactly its weights. Throws Error.
Tensor average_of_checkpoints(const std::vector<Path>& checkpoints, const ParameterSet& parameters);

}  // namespace attend
