#include "attend/search/load_model.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "attend/base/error.h"
#include "attend/kernels/activation.h"
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

std::string scale_of(const std::string& name) { return name + std::string(kScaleSuffix); }

/// The weights of a model in a file, checked.
class StoredWeights {
 public:
  StoredWeights(const Transformer& model, const SafetensorsFile& file) : file_(file) {
    std::set<std::string> known;
    for (const Parameter& parameter : model.parameters().parameters()) {
      known.insert(parameter.name);
      check(parameter.name, parameter.shape);
      if (!is_int8(parameter.name)) continue;
      known.insert(scale_of(parameter.name));
      check(scale_of(parameter.name), {parameter.shape.front()});
    }
    for (const std::string& name : file.names()) {
      if (!known.contains(name)) extra_.push_back(shown(name));
    }
    fail_where_wrong();
  }

  StoredWeight read(const Parameter& parameter) const {
    const Tensor values = file_.read(parameter.name);
    if (values.dtype() == DType::kInt8) return {values, read_scales(scale_of(parameter.name))};
    if (values.dtype() == DType::kFloat32) return {values, {}};
    const Tensor converted(values.shape(), DType::kFloat32);
    convert(values, converted);
    return {converted, {}};
  }

 private:
  Tensor read_scales(const std::string& name) const {
    const Tensor scales = file_.read(name);
    if (scales.dtype() != DType::kFloat32) {
      fail("{}: tensor {} holds {}; expected F32", file_.path().string(), name, file_.dtype(name));
    }
    const std::vector<float> values = scales.to_vector();
    const auto bad = std::ranges::find_if_not(
        values, [](float scale) { return std::isfinite(scale) && scale >= 0; });
    if (bad != values.end()) {
      fail("{}: tensor {} has the scale {}; expected finite numbers of at least 0",
           file_.path().string(), name, *bad);
    }
    return scales;
  }

  bool is_int8(const std::string& name) const {
    return file_.contains(name) && file_.dtype(name) == "I8";
  }

  void check(const std::string& name, const Shape& shape) {
    if (!file_.contains(name)) {
      missing_.push_back(name);
    } else if (file_.shape(name) != shape) {
      ill_shaped_.push_back(fmt::format("{} is {} instead of {}", name,
                                        to_string(file_.shape(name)), to_string(shape)));
    }
  }

  void fail_where_wrong() const {
    std::vector<std::string> wrong;
    if (!missing_.empty()) wrong.push_back("missing: " + listed(missing_));
    if (!ill_shaped_.empty()) wrong.push_back("of another shape: " + listed(ill_shaped_));
    if (!extra_.empty()) wrong.push_back("not the model's: " + listed(extra_));
    if (wrong.empty()) return;
    fail("{} does not hold the weights of the model in its config.json; {}", file_.path().string(),
         fmt::join(wrong, "; "));
  }

  const SafetensorsFile& file_;
  std::vector<std::string> missing_, ill_shaped_, extra_;
};

}  // namespace

void load_weights(Transformer& model, const SafetensorsFile& weights) {
  const StoredWeights stored(model, weights);
  model.parameters().load([&](const Parameter& parameter) { return stored.read(parameter); },
                          model.weights());
}

DType stored_dtype(const SafetensorsFile& weights) {
  bool bfloat16 = false;
  for (const auto& [name, tensor] : weights.tensors()) {
    if (tensor.dtype == "I8") return DType::kInt8;
    bfloat16 = bfloat16 || tensor.dtype == "BF16";
  }
  return bfloat16 ? DType::kBFloat16 : DType::kFloat32;
}

std::shared_ptr<const Transformer> load_model(const ModelFiles& files, InferencePrecision precision,
                                              bool for_shortlist) {
  const DType weights = choose_precision(precision, stored_dtype(files.weights));
  auto model = std::make_shared<Transformer>(files.config, weights);
  if (for_shortlist) model->keep_output_rows();
  load_weights(*model, files.weights);
  return model;
}

namespace {

void refuse_bad_numbers(const SafetensorsFile& file, const std::string& name,
                        const StoredWeight& weight) {
  if (weight.scales.defined()) return;  // checked
  const std::vector<float> values = weight.values.to_vector();
  const auto bad = std::ranges::find_if_not(values, [](float x) { return std::isfinite(x); });
  if (bad == values.end()) return;
  fail("{}: tensor {} has the number {}: the file is damaged, or training diverged",
       file.path().string(), name, *bad);
}

}  // namespace

NamedTensors convert_weights(const ModelFiles& files, DType dtype) {
  const Transformer model(files.config, DType::kFloat32);
  const StoredWeights stored(model, files.weights);
  NamedTensors converted;
  for (const Parameter& parameter : model.parameters().parameters()) {
    const StoredWeight weight = stored.read(parameter);
    refuse_bad_numbers(files.weights, parameter.name, weight);
    if (dtype == DType::kInt8 && parameter.use != ParameterUse::kPlain) {
      const QuantizedMatrix quantized = as_int8(weight);
      converted.emplace_back(parameter.name, quantized.values);
      converted.emplace_back(scale_of(parameter.name), quantized.scales);
      continue;
    }
    const bool keep = dtype != DType::kBFloat16 || parameter.use == ParameterUse::kPlain;
    const Tensor numbers = as_float32(weight);
    const Tensor made = keep ? numbers : Tensor(numbers.shape(), dtype);
    if (!keep) convert(numbers, made);
    converted.emplace_back(parameter.name, made);
  }
  return converted;
}

}  // namespace attend
