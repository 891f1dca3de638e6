#include <charconv>
#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "attend/base/error.h"
#include "attend/base/version.h"
#include "attend/models/config.h"
#include "attend/models/config_fields.h"
#include "attend/models/hostile_text.h"

namespace attend {
namespace {

using Json = nlohmann::ordered_json;

/// The shortest decimal that reads back as the same float: 0.1, not 0.10000000149011612.
double shortest(float value) {
  const std::string text = fmt::format("{}", value);
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// One flat object. Depth and repeated names are checked while parsing, before anything is built.
Json parse_object(const std::string& text, const std::string& file) {
  std::set<std::string> seen;
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if (depth > 0 && (event == Event::object_start || event == Event::array_start)) {
      fail("{}: it holds an object or a list inside the object; expected the fields alone", file);
    }
    if (event == Event::key && !seen.insert(parsed.get<std::string>()).second) {
      fail("{}: the field {} is there twice", file, shown(parsed.get<std::string>()));
    }
    return true;
  };
  Json parsed;
  try {
    parsed = Json::parse(text, check);
  } catch (const Json::exception& error) {
    fail("{}: not valid JSON: {}", file, shown(error));
  }
  if (!parsed.is_object()) fail("{}: expected a JSON object, found a {}", file, parsed.type_name());
  return parsed;
}

/// Reads the fields of one file and remembers which were asked for.
class FieldReader {
 public:
  FieldReader(const Json& object, const std::string& file) : object_(object), file_(file) {}

  void operator()(const char* name, int64_t& field) {
    const Json& value = find(name);
    const bool fits = value.is_number_integer() &&
                      !(value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX);
    if (!fits) refuse(name, "a whole number of at most 64 bits", value);
    field = value.get<int64_t>();
  }
  void operator()(const char* name, float& field) {
    const Json& value = find(name);
    if (!value.is_number()) refuse(name, "a number", value);
    const auto number = value.get<double>();
    if (!(std::abs(number) <= 1e6)) refuse(name, "a number between -1000000 and 1000000", value);
    field = static_cast<float>(number);
  }
  void operator()(const char* name, std::string& field) {
    const Json& value = find(name);
    if (!value.is_string()) refuse(name, "a string", value);
    field = value.get<std::string>();
  }
  void operator()(const char* name, Positions& field) { field = parse_positions(text(name)); }
  void operator()(const char* name, NormPlacement& field) { field = parse_norm(text(name)); }
  void operator()(const char* name, Activation& field) { field = parse_activation(text(name)); }
  void operator()(const char* name, TiedEmbeddings& field) {
    field = parse_tied_embeddings(text(name));
  }
  void operator()(const char* name, AttentionScore& field) {
    field = parse_attention_score(text(name));
  }

  void refuse_unknown() const {
    for (const auto& [name, value] : object_.items()) {
      if (!known_.contains(name)) {
        fail("{}: unknown field {}; attend {} writes format {} without it", file_, shown(name),
             kVersion, kConfigFormat);
      }
    }
  }

 private:
  const Json& find(const char* name) {
    known_.insert(name);
    const auto found = object_.find(name);
    if (found == object_.end()) fail("{}: the field \"{}\" is missing", file_, name);
    return *found;
  }
  std::string text(const char* name) {
    std::string value;
    (*this)(name, value);
    return value;
  }
  [[noreturn]] void refuse(const char* name, std::string_view expected, const Json& value) const {
    const std::string found = value.is_string() ? shown(value.get<std::string>()) : value.dump();
    fail("{}: the field \"{}\" holds {}; expected {}", file_, name, found, expected);
  }

  const Json& object_;
  const std::string& file_;
  std::set<std::string> known_;
};

}  // namespace

std::string to_json(const TransformerConfig& config) {
  Json object;
  object["format"] = kConfigFormat;
  object["attend_version"] = kVersion;
  visit_fields(config, [&](const char* name, const auto& field) {
    using Field = std::decay_t<decltype(field)>;
    if constexpr (std::is_enum_v<Field>) {
      object[name] = name_of(field);
    } else if constexpr (std::is_floating_point_v<Field>) {
      object[name] = shortest(field);
    } else {
      object[name] = field;
    }
  });
  return object.dump(2) + "\n";
}

TransformerConfig config_from_json(const std::string& text, const std::string& file_name) {
  const Json object = parse_object(text, file_name);
  FieldReader read(object, file_name);
  int64_t format = 0;
  std::string version;
  read("format", format);
  read("attend_version", version);
  if (format > kConfigFormat) {
    fail(
        "{}: written by attend {} in format {}, and this is attend {}, which reads formats up to "
        "{}; install attend {} or later to use this model",
        file_name, shown(version), format, kVersion, kConfigFormat, shown(version));
  }
  if (format < 1) fail("{}: the field \"format\" holds {}; expected 1", file_name, format);

  TransformerConfig config;
  try {
    visit_fields(config, read);
    read.refuse_unknown();
    config.validate();
  } catch (const UsageError& error) {
    fail("{}: {}", file_name, error.what());  // a damaged file is no wrong call
  }
  return config;
}

}  // namespace attend
