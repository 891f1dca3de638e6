#include "attend/io/safetensors_header.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>

#include "attend/base/error.h"
#include "attend/models/hostile_text.h"

namespace attend {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxTensors = 1 << 18;
constexpr std::size_t kMaxDimensions = 16;
constexpr std::string_view kMetadataName = "__metadata__";

/// Takes the header's JSON as a stream of events, so that a hostile one is refused at its first
/// wrong token: nothing nests deeper than the format does, and no document is built.
class HeaderParser : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderParser(const Path& path) : path_(path) {}

  SafetensorsHeader take() { return std::move(header_); }

  bool start_object(std::size_t) override {
    switch (state_) {
      case State::kStart:
        state_ = State::kTop;
        return true;
      case State::kTensor:
        state_ = State::kTensorFields;
        return true;
      case State::kMetadata:
        state_ = State::kMetadataFields;
        return true;
      default:
        refuse("an object");
    }
  }

  bool key(string_t& name) override {
    field_ = name;
    if (state_ == State::kMetadataFields) {
      if (header_.metadata.contains(name)) {
        fail("{}: {} has the key {} twice", path_.string(), kMetadataName, shown(name));
      }
    } else if (state_ == State::kTensorFields) {
      start_field();
    } else {
      start_entry();
    }
    return true;
  }

  bool end_object() override {
    if (state_ == State::kTensorFields) finish_tensor();
    state_ = state_ == State::kTop ? State::kEnd : State::kTop;
    return true;
  }

  bool string(string_t& value) override {
    if (state_ == State::kMetadataFields) {
      header_.metadata.emplace(field_, std::move(value));
    } else if (state_ == State::kTensorFields && field_ == "dtype") {
      tensor_.dtype = std::move(value);
    } else {
      refuse("a string");
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (state_ != State::kTensorFields || field_ == "dtype") refuse("a list");
    state_ = State::kNumbers;
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (state_ != State::kNumbers) refuse("a number");
    if (value > static_cast<uint64_t>(INT64_MAX)) refuse("a number of more than 63 bits");
    auto& list = field_ == "shape" ? tensor_.shape : offsets_;
    if (list.size() == kMaxDimensions) refuse("a list of more than 16 numbers");
    list.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool end_array() override {
    state_ = State::kTensorFields;
    return true;
  }

  bool number_integer(number_integer_t) override { refuse("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { refuse("a fraction"); }
  bool null() override { refuse("null"); }
  bool boolean(bool) override { refuse("a truth value"); }
  bool binary(binary_t&) override { refuse("binary data"); }

  bool parse_error(std::size_t, const std::string&, const Json::exception& error) override {
    fail("{}: the header is not valid JSON: {}", path_.string(), shown(error));
  }

 private:
  enum class State {
    kStart,
    kTop,             // between the entries
    kMetadata,        // after the key "__metadata__"
    kMetadataFields,  // inside its object
    kTensor,          // after a tensor's name
    kTensorFields,    // inside its object
    kNumbers,         // inside "shape" or "data_offsets"
    kEnd
  };

  [[noreturn]] void refuse(std::string_view found) const {
    switch (state_) {
      case State::kMetadata:
      case State::kMetadataFields:
        fail("{}: {} holds {} at {}; expected strings alone", path_.string(), kMetadataName, found,
             shown(field_));
      case State::kTensor:
        fail("{}: tensor {} is {}; expected an object", path_.string(), shown(name_), found);
      case State::kTensorFields:
      case State::kNumbers:
        fail("{}: tensor {}: {} holds {}; expected {}", path_.string(), shown(name_), field_, found,
             field_ == "dtype" ? "a string" : "a list of whole numbers");
      default:
        fail("{}: the header is {}; expected an object", path_.string(), found);
    }
  }

  void start_entry() {
    if (field_ == kMetadataName) {
      if (seen_metadata_) fail("{}: {} is there twice", path_.string(), kMetadataName);
      seen_metadata_ = true;
      state_ = State::kMetadata;
      return;
    }
    if (header_.tensors.contains(field_)) {
      fail("{}: tensor {} is there twice", path_.string(), shown(field_));
    }
    if (header_.tensors.size() == kMaxTensors) {
      fail("{}: more than {} tensors", path_.string(), kMaxTensors);
    }
    name_ = field_;
    tensor_ = {};
    offsets_.clear();
    seen_fields_ = {};
    state_ = State::kTensor;
  }

  void start_field() {
    const auto known = std::find(kFields.begin(), kFields.end(), field_);
    if (known == kFields.end()) {
      fail("{}: tensor {} has the unknown field {}", path_.string(), shown(name_), shown(field_));
    }
    bool& seen = seen_fields_[static_cast<std::size_t>(known - kFields.begin())];
    if (seen) fail("{}: tensor {} has the field {} twice", path_.string(), shown(name_), field_);
    seen = true;
  }

  void finish_tensor() {
    for (std::size_t i = 0; i < kFields.size(); ++i) {
      if (!seen_fields_[i]) {
        fail("{}: tensor {} has no field {}", path_.string(), shown(name_), kFields[i]);
      }
    }
    if (offsets_.size() != 2 || offsets_[0] > offsets_[1]) {
      fail("{}: tensor {}: data_offsets is {}; expected a begin and an end", path_.string(),
           shown(name_), to_string(offsets_));
    }
    tensor_.offset = offsets_[0];
    tensor_.bytes = offsets_[1] - offsets_[0];
    header_.tensors.emplace(std::move(name_), std::move(tensor_));
  }

  static constexpr std::array<std::string_view, 3> kFields = {"dtype", "shape", "data_offsets"};

  const Path& path_;
  SafetensorsHeader header_;
  State state_ = State::kStart;
  bool seen_metadata_ = false;
  std::string field_;
  std::string name_;
  StoredTensor tensor_;
  Shape offsets_;
  std::array<bool, 3> seen_fields_{};
};

/// dtype × shape against the bytes that the tensor is said to have. A dimension of 0 counts as 1 in
/// the check for overflow, so that no partial product of a shape overflows later either.
void check_shape(const std::string& name, const StoredTensor& tensor, const Path& path) {
  const std::optional<int64_t> width = element_bytes(tensor.dtype);
  if (!width) {
    fail("{}: tensor {} has the unknown dtype {}", path.string(), shown(name), shown(tensor.dtype));
  }
  int64_t most = *width;
  bool empty = false;
  for (const int64_t size : tensor.shape) {
    empty = empty || size == 0;
    if (__builtin_mul_overflow(most, std::max<int64_t>(size, 1), &most)) {
      fail("{}: tensor {}: the shape {} has too many elements to count", path.string(), shown(name),
           to_string(tensor.shape));
    }
  }
  const int64_t expected = empty ? 0 : most;
  if (expected != tensor.bytes) {
    fail("{}: tensor {}: {} of shape {} needs {} bytes, but data_offsets gives it {}",
         path.string(), shown(name), tensor.dtype, to_string(tensor.shape), expected, tensor.bytes);
  }
}

/// The tensors lie end to end and fill the data.
void check_layout(const std::map<std::string, StoredTensor>& tensors, int64_t data_bytes,
                  const Path& path) {
  std::vector<std::tuple<int64_t, int64_t, const std::string*>> ranges;
  ranges.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    ranges.emplace_back(tensor.offset, tensor.offset + tensor.bytes, &name);
  }
  std::sort(ranges.begin(), ranges.end());
  int64_t end = 0;
  for (const auto& [first, last, name] : ranges) {
    if (last > data_bytes) {
      fail("{}: tensor {} ends at byte {} of the data, of which the file has {}: it was cut off",
           path.string(), shown(*name), last, data_bytes);
    }
    if (first != end) {
      fail("{}: tensor {} begins at byte {} of the data, but the one before it ends at {}: they {}",
           path.string(), shown(*name), first, end, first < end ? "overlap" : "leave a hole");
    }
    end = last;
  }
  if (end != data_bytes) {
    fail("{}: the tensors have {} bytes of data, but the file has {}", path.string(), end,
         data_bytes);
  }
}

}  // namespace

std::optional<int64_t> element_bytes(std::string_view dtype) {
  static const std::map<std::string_view, int64_t> widths = {
      {"F64", 8},     {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F8_E5M2", 1},
      {"F8_E4M3", 1}, {"I64", 8}, {"I32", 4}, {"I16", 2},  {"I8", 1},
      {"U64", 8},     {"U32", 4}, {"U16", 2}, {"U8", 1},   {"BOOL", 1}};
  const auto found = widths.find(dtype);
  if (found == widths.end()) return std::nullopt;
  return found->second;
}

SafetensorsHeader parse_safetensors_header(std::string_view json, int64_t data_begin,
                                           int64_t data_bytes, const Path& path) {
  if (!json.starts_with('{')) {
    fail("{} is no safetensors file: its header begins with {}; expected \"{{\"", path.string(),
         shown(json.substr(0, 8)));
  }
  HeaderParser parser(path);
  Json::sax_parse(json, &parser);
  SafetensorsHeader header = parser.take();
  for (const auto& [name, tensor] : header.tensors) check_shape(name, tensor, path);
  check_layout(header.tensors, data_bytes, path);
  for (auto& [name, tensor] : header.tensors) tensor.offset += data_begin;
  return header;
}

}  // namespace attend
