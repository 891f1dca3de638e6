#include "attend/search/load_model.h"

#include <set>
#include <string>
#include <vector>

#include "attend/base/error.h"
#include "attend/models/hostile_text.h"

namespace attend {
namespace {

constexpr std::size_t kMostListed = 5;

/// At most a few of them, and how many more there are.
std::string listed(const std::vector<std::string>& items) {
  const std::size_t count = std::min(items.size(), kMostListed);
  std::string list = fmt::format("{}", fmt::join(items.begin(), items.begin() + count, ", "));
  if (items.size() > count) list += fmt::format(" and {} more", items.size() - count);
  return list;
}

}  // namespace

void load_weights(Transformer& model, const SafetensorsFile& weights) {
  std::vector<std::string> missing, ill_shaped, extra;
  std::set<std::string> known;
  for (const Parameter& parameter : model.parameters().parameters()) {
    known.insert(parameter.name);
    if (!weights.contains(parameter.name)) {
      missing.push_back(parameter.name);
    } else if (weights.shape(parameter.name) != parameter.shape) {
      ill_shaped.push_back(fmt::format("{} is {} instead of {}", parameter.name,
                                       to_string(weights.shape(parameter.name)),
                                       to_string(parameter.shape)));
    }
  }
  for (const std::string& name : weights.names()) {
    if (!known.contains(name)) extra.push_back(shown(name));
  }
  std::vector<std::string> wrong;
  if (!missing.empty()) wrong.push_back("missing: " + listed(missing));
  if (!ill_shaped.empty()) wrong.push_back("of another shape: " + listed(ill_shaped));
  if (!extra.empty()) wrong.push_back("not the model's: " + listed(extra));
  if (!wrong.empty()) {
    fail("{} does not hold the weights of the model in its config.json; {}",
         weights.path().string(), fmt::join(wrong, "; "));
  }
  for (const Parameter& parameter : model.parameters().parameters()) {
    weights.read_into(parameter.name, parameter.master);
  }
  model.parameters().refresh_compute();
}

std::shared_ptr<const Transformer> load_model(const ModelFiles& files, DType compute) {
  auto model = std::make_shared<Transformer>(files.config, compute, false);
  load_weights(*model, files.weights);
  return model;
}

}  // namespace attend
