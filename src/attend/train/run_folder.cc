#include "attend/train/run_folder.h"

#include <map>
#include <system_error>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/io/average.h"
#include "attend/io/model_directory.h"

namespace attend {

Tokenizers tokenizers_of_run(const TrainOptions& options, const std::atomic<bool>* stop) {
  const Path run = options.run;
  const auto load = [&](const char* name) {
    return std::make_shared<const Tokenizer>(Tokenizer::load((run / name).string()));
  };
  try {
    if (std::filesystem::exists(run / kTokenizerFile)) {
      const auto both = load(kTokenizerFile);
      return {both, both};
    }
    return {load(kSourceTokenizerFile), load(kTargetTokenizerFile)};
  } catch (const Error& error) {
    logger().warn("the tokenizer of the run cannot be used and is made again: {}", error.what());
    return make_tokenizers(options, stop);
  }
}

bool holds_whole_model(const Path& run, const TransformerConfig& config) {
  try {
    const ModelFiles files = load_model_directory(run);
    if (files.config != config) fail("{} is of another model", (run / kConfigFile).string());
    files.weights.verify();
    return true;
  } catch (const Error& error) {
    logger().warn("the model in {} cannot be used and is made again from the checkpoints: {}",
                  run.string(), error.what());
    return false;
  }
}

bool holds_foreign_model(const Path& folder) {
  const auto there = [&](const char* name) {
    std::error_code error;
    return std::filesystem::exists(folder / name, error);
  };
  return there(kWeightsFile) && !there("log.jsonl") && !there("checkpoints");
}

Tensor average_of_checkpoints(const std::vector<Path>& checkpoints,
                              const ParameterSet& parameters) {
  Tensor average = Tensor::zeros({parameters.flat_size()}, DType::kFloat32);
  std::map<std::string, Tensor> means;
  for (auto& [name, mean] : average_models(checkpoints)) means.emplace(name, std::move(mean));
  for (const auto& [name, view] : parameters.views(average)) {
    const auto found = means.find(name);
    if (found == means.end()) fail("the checkpoints have no weight named '{}'", name);
    convert(found->second, view);
  }
  return average;
}

}  // namespace attend
