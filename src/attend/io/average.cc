#include "attend/io/average.h"

#include <algorithm>
#include <optional>
#include <string>
#include <system_error>

#include "attend/base/error.h"
#include "attend/io/checkpoint.h"
#include "attend/io/model_directory.h"
#include "attend/models/hostile_text.h"

namespace attend {
namespace {

/// One of the models: an open file and what its weights' names begin with.
struct Source {
  SafetensorsFile file;
  std::string prefix;
  std::optional<TransformerConfig> config;
  std::vector<std::string> names;  ///< without the prefix, sorted
};

std::string prefix_of(const SafetensorsFile& file) {
  if (!is_checkpoint(file)) return {};
  const auto& tensors = file.tensors();
  const bool averaged = std::any_of(tensors.begin(), tensors.end(), [](const auto& entry) {
    return entry.first.starts_with(kAveragePrefix);
  });
  return std::string(averaged ? kAveragePrefix : kWeightsPrefix);
}

Source open_source(const Path& path) {
  std::error_code error;
  const bool folder = std::filesystem::is_directory(path, error);
  SafetensorsFile file = SafetensorsFile::open(folder ? path / kWeightsFile : path);
  Source source{std::move(file), {}, {}, {}};
  source.prefix = prefix_of(source.file);
  source.config = folder ? load_config(path / kConfigFile) : config_in(source.file);
  for (const auto& [name, tensor] : source.file.tensors()) {
    if (name.starts_with(source.prefix)) source.names.push_back(name.substr(source.prefix.size()));
  }
  if (source.names.empty()) fail("{} holds no weights", source.file.path().string());
  return source;
}

void check_same_names(const Source& first, const Source& other) {
  const auto refuse_missing = [](const Source& has, const Source& lacks) {
    for (const std::string& name : has.names) {
      if (std::binary_search(lacks.names.begin(), lacks.names.end(), name)) continue;
      fail("cannot average {} and {}: only the first has the tensor {}", has.file.path().string(),
           lacks.file.path().string(), shown(name));
    }
  };
  refuse_missing(first, other);
  refuse_missing(other, first);
}

void check_same_model(const Source& first, const Source& other) {
  const std::string both = fmt::format("cannot average {} and {}", first.file.path().string(),
                                       other.file.path().string());
  check_same_names(first, other);
  for (const std::string& name : first.names) {
    const Shape& left = first.file.shape(first.prefix + name);
    const Shape& right = other.file.shape(other.prefix + name);
    if (left != right) {
      fail("{}: tensor {} has the shape {} in the first and {} in the second", both, shown(name),
           to_string(left), to_string(right));
    }
  }
  if (first.config && other.config && *first.config != *other.config) {
    fail("{}: {}", both, differences(*first.config, *other.config));
  }
  for (const char* key : {kSourceTokenizerKey, kTargetTokenizerKey}) {
    const auto left = first.file.metadata().find(key);
    const auto right = other.file.metadata().find(key);
    if (left == first.file.metadata().end() || right == other.file.metadata().end()) continue;
    if (left->second != right->second) {
      fail("{}: the {} of the first is {}, of the second {}", both, key, shown(left->second),
           shown(right->second));
    }
  }
}

Tensor mean_of(const std::vector<Source>& sources, const std::string& name) {
  std::vector<double> sums;
  for (const Source& source : sources) {
    const std::vector<float> values = source.file.read(source.prefix + name).to_vector();
    sums.resize(values.size());
    std::transform(values.begin(), values.end(), sums.begin(), sums.begin(), std::plus<double>());
  }
  const auto count = static_cast<double>(sources.size());
  std::vector<float> means(sums.size());
  std::transform(sums.begin(), sums.end(), means.begin(),
                 [count](double sum) { return static_cast<float>(sum / count); });
  return Tensor::from(means, sources.front().file.shape(sources.front().prefix + name));
}

void check_not_quantized(const Source& source) {
  for (const std::string& name : source.names) {
    if (source.file.dtype(source.prefix + name) != "I8") continue;
    fail("{} is an int8 model; average the models that it was converted from",
         source.file.path().string());
  }
}

}  // namespace

NamedTensors average_models(const std::vector<Path>& paths) {
  if (paths.empty()) fail_usage("no models were given to average");
  std::vector<Source> sources;
  for (const Path& path : paths) {
    sources.push_back(open_source(path));
    check_same_model(sources.front(), sources.back());
    check_not_quantized(sources.back());
  }
  NamedTensors averaged;
  for (const std::string& name : sources.front().names) {
    averaged.emplace_back(name, mean_of(sources, name));
  }
  return averaged;
}

}  // namespace attend
