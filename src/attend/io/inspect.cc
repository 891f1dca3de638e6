#include "attend/io/inspect.h"

#include <algorithm>
#include <system_error>

#include "attend/base/error.h"
#include "attend/io/checkpoint.h"
#include "attend/io/model_directory.h"
#include "attend/models/config_fields.h"
#include "attend/models/hostile_text.h"

namespace attend {
namespace {

/// 63082496 as "63,082,496".
std::string grouped(int64_t number) {
  const std::string digits = fmt::format("{}", number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string describe_config(const TransformerConfig& config) {
  std::string text = "configuration\n";
  visit_fields(config, [&](const char* name, const auto& field) {
    if constexpr (std::is_enum_v<std::decay_t<decltype(field)>>) {
      text += fmt::format("  {:<24}{}\n", name, name_of(field));
    } else {
      text += fmt::format("  {:<24}{}\n", name, field);
    }
  });
  return text;
}

std::string describe_tokenizer(const char* label, const Tokenizer& tokenizer) {
  return fmt::format("{}: {} pieces, fingerprint {}, byte fallback {}\n", label,
                     grouped(tokenizer.vocabulary_size()), tokenizer.fingerprint(),
                     tokenizer.has_byte_fallback() ? "on" : "off");
}

std::string describe_metadata(const SafetensorsFile& file) {
  std::string text;
  constexpr std::size_t kMost = 2000;
  for (const auto& [key, value] : file.metadata()) {
    if (key == kConfigKey) continue;  // shown as what it is
    text += text.empty() ? "metadata\n" : "";
    text += fmt::format("  {}: {}\n", shown(key), shown(value, kMost));
  }
  return text;
}

struct Total {
  int64_t tensors = 0;
  int64_t elements = 0;
  int64_t bytes = 0;

  void add(const StoredTensor& tensor) {
    ++tensors;
    elements += count_of(tensor.shape);
    bytes += tensor.bytes;
  }
};

std::string describe_total(std::string_view label, const Total& total) {
  return fmt::format("{}: {} tensors, {} elements, {} bytes\n", label, grouped(total.tensors),
                     grouped(total.elements), grouped(total.bytes));
}

std::string describe_tensors(const SafetensorsFile& file) {
  constexpr std::size_t kWidest = 80;
  std::size_t width = 6;
  Total all;
  std::map<std::string, Total> parts;  // of a checkpoint: "weights/", "adam_m/", ...
  for (const auto& [name, tensor] : file.tensors()) {
    width = std::max(width, std::min(kWidest, shown(name).size()));
    all.add(tensor);
    const std::size_t slash = name.find('/');
    if (slash != std::string::npos) parts[name.substr(0, slash + 1)].add(tensor);
  }
  std::string text = fmt::format("  {:<{}}  {:<8}{:<20}{:>16}{:>18}\n", "tensor", width, "dtype",
                                 "shape", "elements", "bytes");
  for (const auto& [name, tensor] : file.tensors()) {
    text += fmt::format("  {:<{}}  {:<8}{:<20}{:>16}{:>18}\n", shown(name), width, tensor.dtype,
                        to_string(tensor.shape), grouped(count_of(tensor.shape)),
                        grouped(tensor.bytes));
  }
  if (is_checkpoint(file)) {
    for (const auto& [part, total] : parts) text += describe_total("  " + shown(part), total);
  }
  return text + describe_total("total", all);
}

std::string describe_contents(const SafetensorsFile& file) {
  return describe_metadata(file) + describe_tensors(file);
}

std::string describe_file(const SafetensorsFile& file) {
  const std::optional<TransformerConfig> config = config_in(file);
  return (config ? describe_config(*config) : "") + describe_contents(file);
}

std::string describe_directory(const Path& path) {
  const ModelFiles files = load_model_directory(path);
  std::string text = describe_config(files.config);
  if (files.source_tokenizer == files.target_tokenizer) {
    text += describe_tokenizer("joint tokenizer", *files.source_tokenizer);
  } else {
    text += describe_tokenizer("source tokenizer", *files.source_tokenizer);
    text += describe_tokenizer("target tokenizer", *files.target_tokenizer);
  }
  text += describe_contents(files.weights);
  for (const CheckpointFile& each : list_checkpoints(path)) {
    std::error_code error;
    const auto bytes = std::filesystem::file_size(each.path, error);
    text += fmt::format("checkpoint of step {}: {} ({} bytes)\n", each.step, each.path.string(),
                        error ? "?" : grouped(static_cast<int64_t>(bytes)));
  }
  return text;
}

}  // namespace

std::string inspect(const Path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return describe_directory(path);
  const SafetensorsFile file = SafetensorsFile::open(path);
  if (!is_checkpoint(file)) return describe_file(file);
  const Checkpoint checkpoint = load_checkpoint(path);
  return fmt::format("checkpoint of step {}, whole\n", checkpoint.step) + describe_file(file);
}

}  // namespace attend
