#pragma once

#include "attend/cli/option_set.h"
#include "attend/train/options.h"

namespace attend {

/// The options of `attend train`: every field of TrainOptions and of its TransformerConfig but the
/// vocabulary sizes, which follow from the tokenizer.
void define_train_options(OptionSet& options, TrainOptions& train);

/// --preset and the model's fields, for commands that make a model of given sizes. `model` holds
/// the preset already. Returns the option --preset.
Option& define_model_options(OptionSet& options, std::string& preset_name,
                             TransformerConfig& model);

}  // namespace attend
