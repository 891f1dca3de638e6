#include "attend/train/run_folder.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <map>
#include <system_error>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/io/average.h"
#include "attend/io/checkpoint.h"
#include "attend/io/model_directory.h"
#include "attend/train/run_log.h"
#include "attend/train/run_state.h"

namespace attend {
namespace {

/// The last line of the log that speaks of a checkpoint; empty where none does. Of a log of any
/// size the last 64 MiB are read: between two checkpoints there is much less.
std::string last_checkpoint_line(const Path& log) {
  constexpr std::string_view kBegin = R"({"event":"checkpoint")";
  constexpr std::size_t kLongestLine = 256, kBlock = std::size_t{1} << 20;
  constexpr std::streamoff kMostRead = std::streamoff{64} << 20;
  std::ifstream file(log, std::ios::binary | std::ios::ate);
  file.seekg(std::max<std::streamoff>(0, file.tellg() - kMostRead));
  std::string last, text;
  while (file) {
    // What may be the beginning of a line that the next block ends is looked at again.
    const std::size_t kept = std::min(text.size(), kLongestLine);
    text.erase(0, text.size() - kept);
    text.resize(kept + kBlock);
    file.read(text.data() + kept, kBlock);
    text.resize(kept + static_cast<std::size_t>(file.gcount()));
    const std::size_t at = text.rfind(kBegin);
    if (at != std::string::npos) last = text.substr(at, text.find('\n', at) - at);
  }
  return last;
}

/// Reads no more of the file than that takes.
bool holds_text(const Path& path, const std::string& expected) {
  std::ifstream file(path, std::ios::binary);
  std::string text(expected.size() + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text == expected;
}

}  // namespace

Tokenizers tokenizers_of_run(const TrainOptions& options, const std::atomic<bool>* stop) {
  const Path run = options.run;
  // `asked` is what the options name: where the run was started with it, it may be gone.
  const auto load = [&](const char* name, const std::string& asked) {
    auto own = std::make_shared<const Tokenizer>(Tokenizer::load((run / name).string()));
    std::error_code error;
    if (!asked.empty() && std::filesystem::exists(asked, error) &&
        !holds_text(asked, own->serialized())) {
      logger().warn("{} is not the tokenizer of the run, which goes on with its own, {}", asked,
                    (run / name).string());
    }
    return own;
  };
  try {
    if (std::filesystem::exists(run / kTokenizerFile) ||
        !std::filesystem::exists(run / kSourceTokenizerFile)) {
      const auto both = load(kTokenizerFile, options.tokenizer);
      return {both, both};
    }
    return {load(kSourceTokenizerFile, options.source_tokenizer),
            load(kTargetTokenizerFile, options.target_tokenizer)};
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

Path recipe_path(const Path& run) { return run / kRecipeFile; }

std::optional<RunState> state_of_run(const Path& run) {
  const std::vector<CheckpointFile> files = list_checkpoints(run);
  for (auto each = files.rbegin(); each != files.rend(); ++each) {
    try {
      const SafetensorsFile file = SafetensorsFile::open(each->path);
      if (!is_checkpoint(file)) continue;
      const auto state = nlohmann::json::parse(file.metadata().at("state"));
      return RunState::from_json(state, each->path.string());
    } catch (const std::exception&) {
      continue;  // load_latest_checkpoint says what is wrong with it
    }
  }
  return {};
}

std::string recipe_of_checkpoints(const Path& run) {
  return state_of_run(run).value_or(RunState()).recipe;
}

bool holds_recipe(const Path& run, const std::string& recipe) {
  return holds_text(recipe_path(run), recipe);
}

void write_recipe(const Path& run, const std::string& recipe) {
  if (!recipe.empty() && !holds_recipe(run, recipe)) write_file(recipe_path(run), recipe);
}

void refuse_lost_checkpoints(const Path& run) {
  if (!list_checkpoints(run).empty()) return;
  const std::string line = last_checkpoint_line(RunLog::jsonl(run));
  if (line.empty()) return;
  const auto event = nlohmann::json::parse(line, nullptr, false);
  const std::string update =
      event.is_object() && event.contains("update")
          ? fmt::format(", the last of them after update {}", event["update"].dump())
          : "";
  fail(
      "run {} had checkpoints{}, and there is none in {} any more: put them back to go on with it, "
      "or start another run with another --run",
      run.string(), update, checkpoint_path(run, 0).parent_path().string());
}

void refuse_unwritable_folder(std::string_view option, const Path& folder) {
  std::error_code error;
  Path there = std::filesystem::absolute(folder, error);
  while (!std::filesystem::exists(there, error) && there.has_relative_path()) {
    there = there.parent_path();
  }
  if (!std::filesystem::is_directory(there, error)) {
    fail("{}: {} is not a folder; choose another", option, there.string());
  }
  if (::access(there.c_str(), W_OK | X_OK) != 0) fail_on_file("write in", there, errno);
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
