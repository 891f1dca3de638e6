#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attend/base/files.h"
#include "attend/data/tokenizer.h"
#include "attend/io/safetensors.h"
#include "attend/models/config.h"

namespace attend {

inline constexpr const char* kConfigFile = "config.json";
inline constexpr const char* kWeightsFile = "model.safetensors";
inline constexpr const char* kTokenizerFile = "tokenizer.model";
inline constexpr const char* kSourceTokenizerFile = "source.tokenizer.model";
inline constexpr const char* kTargetTokenizerFile = "target.tokenizer.model";
inline constexpr const char* kRecipeFile = "recipe.yaml";  ///< of a run: its options

/// Keys in the metadata of weights and checkpoints, which tie them to their model: config.json as a
/// text, and the fingerprints of the tokenizers that they were trained with.
inline constexpr const char* kConfigKey = "attend_config";
inline constexpr const char* kSourceTokenizerKey = "source_tokenizer";
inline constexpr const char* kTargetTokenizerKey = "target_tokenizer";

/// An int8 matrix has its scales beside it, under its name with this after it.
inline constexpr std::string_view kScaleSuffix = ".scale";

/// What a model directory holds. With a joint tokenizer both pointers are the same.
struct ModelFiles {
  TransformerConfig config;
  std::shared_ptr<const Tokenizer> source_tokenizer;
  std::shared_ptr<const Tokenizer> target_tokenizer;
  SafetensorsFile weights;
};

/// Opens a model directory, or the root of a run directory, which holds the same files. Throws
/// Error: a file is missing (named), damaged, or of another model than the others (contract 21:
/// tokenizer and configuration disagree on the size of the vocabulary, or the weights were saved
/// with another tokenizer or configuration).
ModelFiles load_model_directory(const Path& directory);

/// The metadata under those keys. Files that lack them, of earlier versions or other programs, are
/// taken as they are.
std::map<std::string, std::string> model_metadata(const TransformerConfig& config,
                                                  const Tokenizer& source_tokenizer,
                                                  const Tokenizer& target_tokenizer);

/// The configuration in a file's metadata, where there is one. Throws Error where it is damaged.
std::optional<TransformerConfig> config_in(const SafetensorsFile& file);

/// "activation is relu in the first and gelu in the second", for all fields that differ.
std::string differences(const TransformerConfig& first, const TransformerConfig& second);

/// What there is in a folder of a model's or a run's files: configuration, weights, tokenizers,
/// checkpoints. Empty where it holds neither model nor run.
std::vector<std::string> files_of_model(const Path& directory);

/// Reads config.json, or a file like it. Throws Error.
TransformerConfig load_config(const Path& path);

/// Writes the configuration and the tokenizers (one file when both are the same object) and then
/// the weights, each complete or absent. Files that hold the same already are left alone, so that a
/// run rewrites its weights only. Where the directory holds another model, its weights go first: a
/// crash leaves no mixture. `metadata` is added to that of the weights.
void save_model_directory(const Path& directory, const TransformerConfig& config,
                          const std::shared_ptr<const Tokenizer>& source_tokenizer,
                          const std::shared_ptr<const Tokenizer>& target_tokenizer,
                          const NamedTensors& weights,
                          const std::map<std::string, std::string>& metadata = {});

/// Writes other weights of the model in `files` into a folder that is not there yet, or empty: all
/// or nothing, under the name with ".unfinished" until it is complete.
void save_new_model_directory(const Path& directory, const ModelFiles& files,
                              const NamedTensors& weights);

}  // namespace attend
