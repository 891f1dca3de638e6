#include "attend/io/model_directory.h"

#include <system_error>
#include <vector>

#include "attend/base/error.h"
#include "attend/base/version.h"
#include "attend/io/checkpoint.h"
#include "attend/models/config_fields.h"
#include "attend/models/hostile_text.h"

namespace attend {
namespace {

constexpr int64_t kMaxConfigBytes = 1 << 20;
constexpr const char* kVersionKey = "attend_version";

bool there(const Path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

void require_folder(const Path& directory) {
  std::error_code error;
  if (!std::filesystem::exists(directory, error)) {
    fail("there is no folder {}; expected a model or run directory", directory.string());
  }
  if (!std::filesystem::is_directory(directory, error)) {
    fail("{} is not a folder; expected a model or run directory", directory.string());
  }
}

/// Names all that is missing at once. True for a joint tokenizer.
bool require_files(const Path& directory) {
  std::vector<std::string> missing;
  for (const char* name : {kConfigFile, kWeightsFile}) {
    if (!there(directory / name)) missing.emplace_back(name);
  }
  const bool joint = there(directory / kTokenizerFile);
  const bool source = there(directory / kSourceTokenizerFile);
  const bool target = there(directory / kTargetTokenizerFile);
  if (joint && (source || target)) {
    fail(
        "{} holds {} and {} too; expected a joint tokenizer or two separate ones: remove what the "
        "model was not trained with",
        directory.string(), kTokenizerFile, source ? kSourceTokenizerFile : kTargetTokenizerFile);
  }
  if (!joint && !source && !target) {
    missing.emplace_back(kTokenizerFile);
  } else if (!joint && !(source && target)) {
    missing.emplace_back(source ? kTargetTokenizerFile : kSourceTokenizerFile);
  }
  if (!missing.empty()) {
    fail("{} is not a complete model directory: it lacks {}", directory.string(),
         fmt::join(missing, " and "));
  }
  return joint;
}

void check_vocabulary(const Path& directory, const char* side, const Path& tokenizer_path,
                      const Tokenizer& tokenizer, int64_t expected) {
  if (tokenizer.vocabulary_size() == expected) return;
  fail("{} has a vocabulary of {}, but {} says {}_vocabulary_size {}: they do not belong together",
       tokenizer_path.string(), tokenizer.vocabulary_size(), (directory / kConfigFile).string(),
       side, expected);
}

void check_fingerprint(const SafetensorsFile& weights, const char* key, const Path& tokenizer_path,
                       const Tokenizer& tokenizer) {
  const auto saved = weights.metadata().find(key);
  if (saved == weights.metadata().end() || saved->second == tokenizer.fingerprint()) return;
  fail(
      "{} was saved with the {} {}, but {} is {}: they do not belong together; bring back the "
      "tokenizer that the model was trained with",
      weights.path().string(), key, shown(saved->second), tokenizer_path.string(),
      shown(tokenizer.fingerprint()));
}

void check_config(const SafetensorsFile& weights, const TransformerConfig& config,
                  const Path& directory) {
  const std::optional<TransformerConfig> saved = config_in(weights);
  if (!saved || *saved == config) return;
  fail("{} is not the one that {} was saved with: {}; bring back the right one",
       (directory / kConfigFile).string(), weights.path().string(), differences(config, *saved));
}

/// Whether a tensor is the scales of an int8 one, which are no weights of their own.
bool is_scale(const SafetensorsFile& weights, std::string_view name) {
  if (!name.ends_with(kScaleSuffix)) return false;
  const std::string of(name.substr(0, name.size() - kScaleSuffix.size()));
  return weights.contains(of) && weights.dtype(of) == "I8";
}

void check_weight_count(const SafetensorsFile& weights, const TransformerConfig& config,
                        const Path& directory) {
  int64_t found = 0;
  for (const auto& [name, tensor] : weights.tensors()) {
    if (!is_scale(weights, name)) found += count_of(tensor.shape);
  }
  const int64_t expected = parameter_count(config);
  if (found != expected) {
    fail("{} holds {} weights, but {} describes a model of {}: they do not belong together",
         weights.path().string(), found, (directory / kConfigFile).string(), expected);
  }
}

// ------------------------------------------------------------------------------ saving

struct FileToWrite {
  Path path;
  std::string contents;
};

bool holds(const Path& path, const std::string& contents) {
  if (!there(path)) return false;
  const FileDescriptor file = open_file(path);
  const auto bytes = static_cast<int64_t>(contents.size());
  return size_of_file(file, path) == bytes && read_file(path, bytes) == contents;
}

/// Whether config.json says the same, maybe in another version's words.
bool holds_config(const Path& path, const TransformerConfig& config) {
  if (!there(path)) return false;
  try {
    return load_config(path) == config;
  } catch (const Error&) {
    return false;  // to be written over
  }
}

}  // namespace

std::map<std::string, std::string> model_metadata(const TransformerConfig& config,
                                                  const Tokenizer& source_tokenizer,
                                                  const Tokenizer& target_tokenizer) {
  return {{kConfigKey, to_json(config)},
          {kSourceTokenizerKey, source_tokenizer.fingerprint()},
          {kTargetTokenizerKey, target_tokenizer.fingerprint()}};
}

std::optional<TransformerConfig> config_in(const SafetensorsFile& file) {
  const auto found = file.metadata().find(kConfigKey);
  if (found == file.metadata().end()) return std::nullopt;
  return config_from_json(found->second,
                          fmt::format("{}: {} in its metadata", file.path().string(), kConfigKey));
}

std::string differences(const TransformerConfig& first, const TransformerConfig& second) {
  std::vector<std::string> values;
  std::vector<std::string> lines;
  const auto text_of = [](const auto& field) {
    if constexpr (std::is_enum_v<std::decay_t<decltype(field)>>) {
      return std::string(name_of(field));
    } else {
      return fmt::format("{}", field);
    }
  };
  visit_fields(first, [&](const char*, const auto& field) { values.push_back(text_of(field)); });
  auto value = values.begin();
  visit_fields(second, [&](const char* name, const auto& field) {
    const std::string other = text_of(field);
    if (*value != other) {
      lines.push_back(
          fmt::format("{} is {} in the first and {} in the second", name, *value, other));
    }
    ++value;
  });
  return fmt::format("{}", fmt::join(lines, ", "));
}

std::vector<std::string> files_of_model(const Path& directory) {
  std::vector<std::string> files;
  for (const char* name : {kConfigFile, kWeightsFile, kTokenizerFile, kSourceTokenizerFile,
                           kTargetTokenizerFile, kRecipeFile}) {
    if (there(directory / name)) files.push_back((directory / name).string());
  }
  std::error_code error;  // what is no folder has no checkpoints
  if (!std::filesystem::is_directory(directory, error)) return files;
  for (const CheckpointFile& each : list_checkpoints(directory))
    files.push_back(each.path.string());
  return files;
}

TransformerConfig load_config(const Path& path) {
  return config_from_json(read_file(path, kMaxConfigBytes), path.string());
}

ModelFiles load_model_directory(const Path& directory) {
  require_folder(directory);
  const bool joint = require_files(directory);
  const TransformerConfig config = load_config(directory / kConfigFile);
  SafetensorsFile weights = SafetensorsFile::open(directory / kWeightsFile);

  const Path source_path = directory / (joint ? kTokenizerFile : kSourceTokenizerFile);
  const Path target_path = directory / (joint ? kTokenizerFile : kTargetTokenizerFile);
  auto source = std::make_shared<const Tokenizer>(Tokenizer::load(source_path.string()));
  auto target =
      joint ? source : std::make_shared<const Tokenizer>(Tokenizer::load(target_path.string()));
  check_vocabulary(directory, "source", source_path, *source, config.source_vocabulary_size);
  check_vocabulary(directory, "target", target_path, *target, config.target_vocabulary_size);
  check_weight_count(weights, config, directory);
  check_config(weights, config, directory);
  check_fingerprint(weights, kSourceTokenizerKey, source_path, *source);
  check_fingerprint(weights, kTargetTokenizerKey, target_path, *target);
  return {config, std::move(source), std::move(target), std::move(weights)};
}

void save_model_directory(const Path& directory, const TransformerConfig& config,
                          const std::shared_ptr<const Tokenizer>& source_tokenizer,
                          const std::shared_ptr<const Tokenizer>& target_tokenizer,
                          const NamedTensors& weights,
                          const std::map<std::string, std::string>& metadata) {
  const bool joint = source_tokenizer == target_tokenizer;
  std::vector<FileToWrite> changed;
  std::vector<Path> foreign;
  const auto keep_or_write = [&](const char* name, const Tokenizer& tokenizer) {
    if (holds(directory / name, tokenizer.serialized())) return;
    changed.push_back({directory / name, tokenizer.serialized()});
  };
  const auto drop = [&](const char* name) {
    if (there(directory / name)) foreign.push_back(directory / name);
  };

  ensure_directory(directory);
  if (!holds_config(directory / kConfigFile, config)) {
    changed.push_back({directory / kConfigFile, to_json(config)});
  }
  if (joint) {
    keep_or_write(kTokenizerFile, *source_tokenizer);
    drop(kSourceTokenizerFile);
    drop(kTargetTokenizerFile);
  } else {
    keep_or_write(kSourceTokenizerFile, *source_tokenizer);
    keep_or_write(kTargetTokenizerFile, *target_tokenizer);
    drop(kTokenizerFile);
  }
  if (!changed.empty() || !foreign.empty()) remove_file(directory / kWeightsFile);
  for (const Path& path : foreign) remove_file(path);
  for (const FileToWrite& file : changed) write_file(file.path, file.contents);

  auto complete = model_metadata(config, *source_tokenizer, *target_tokenizer);
  complete.insert(metadata.begin(), metadata.end());
  complete[kVersionKey] = kVersion;
  write_safetensors(directory / kWeightsFile, weights, complete);
}

void save_new_model_directory(const Path& directory, const ModelFiles& files,
                              const NamedTensors& weights) {
  Path whole = directory.has_filename() ? directory : directory.parent_path();
  Path unfinished = whole;
  unfinished += ".unfinished";
  const auto remove_unfinished = [&unfinished] {
    std::error_code error;
    for (const std::string& file : files_of_model(unfinished)) {
      std::filesystem::remove(file, error);
    }
    std::filesystem::remove(unfinished, error);
  };
  std::error_code error;
  if (std::filesystem::exists(whole, error) && !std::filesystem::is_empty(whole, error)) {
    fail("{} is there and not empty; expected a new folder or an empty one", whole.string());
  }
  remove_unfinished();  // what an earlier call left that was killed
  try {
    save_model_directory(unfinished, files.config, files.source_tokenizer, files.target_tokenizer,
                         weights);
    std::filesystem::rename(unfinished, whole);
  } catch (const std::filesystem::filesystem_error& failed) {
    remove_unfinished();
    fail("cannot make the folder {}: {}", whole.string(), failed.code().message());
  } catch (...) {
    remove_unfinished();
    throw;
  }
}

}  // namespace attend
