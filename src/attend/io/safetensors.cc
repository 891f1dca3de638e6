#include "attend/io/safetensors.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>

#include <nlohmann/json.hpp>
#include <zlib.h>

#include "attend/base/error.h"
#include "attend/io/safetensors_header.h"
#include "attend/models/hostile_text.h"

namespace attend {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian");

namespace {

constexpr int64_t kLengthBytes = 8;  // the header's length stands before it

uint32_t add_to_checksum(uint32_t checksum, const void* data, int64_t bytes) {
  return static_cast<uint32_t>(
      crc32_z(checksum, static_cast<const unsigned char*>(data), static_cast<std::size_t>(bytes)));
}

// ------------------------------------------------------------------------------ reading

/// One checksum a tensor, in the order of names.
std::map<std::string, uint32_t> parse_checksums(std::string_view text,
                                                const std::map<std::string, StoredTensor>& tensors,
                                                const Path& path) {
  std::map<std::string, uint32_t> checksums;
  const char* next = text.data();
  const char* const end = text.data() + text.size();
  bool whole = text.size() + 1 == tensors.size() * 9 || (text.empty() && tensors.empty());
  for (auto each = tensors.begin(); whole && each != tensors.end(); ++each) {
    const char* const stop = next + 8;
    whole = std::from_chars(next, stop, checksums[each->first], 16).ptr == stop &&
            (stop == end || *stop == ' ');
    next = stop + 1;
  }
  if (!whole) {
    fail("{}: {} holds {}; expected 8 hexadecimal digits for each of {} tensors", path.string(),
         kChecksumKey, shown(text), tensors.size());
  }
  return checksums;
}

constexpr std::string_view kIntegers = "I32";

/// As safetensors spells it.
std::string_view spelled(DType dtype) {
  if (dtype == DType::kInt8) return "I8";
  return dtype == DType::kFloat32 ? "F32" : "BF16";
}

std::optional<DType> dtype_called(std::string_view name) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kInt8}) {
    if (spelled(dtype) == name) return dtype;
  }
  return std::nullopt;
}

float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = half >> 10 & 0x1F;
  const uint32_t fraction = half & 0x3FF;
  if (exponent == 0) {  // zero, or too small for a hidden bit
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 0x1F ? 0xFF : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

}  // namespace

struct SafetensorsFile::Contents {
  Path path;
  FileDescriptor file;
  int64_t bytes = 0;
  SafetensorsHeader header;
  bool has_checksums = false;
  std::map<std::string, uint32_t> checksums;

  void check(const std::string& name, uint32_t found) const {
    if (!has_checksums || checksums.at(name) == found) return;
    fail(
        "{}: tensor {} has the checksum {:08x}, but was written with {:08x}: the file is damaged, "
        "or a program changed it and kept its metadata {}",
        path.string(), shown(name), found, checksums.at(name), kChecksumKey);
  }

  /// All bytes of a tensor, checked.
  void read(const std::string& name, const StoredTensor& tensor, void* into) const {
    read_at(file, path, tensor.offset, into, tensor.bytes);
    if (has_checksums) check(name, add_to_checksum(0, into, tensor.bytes));
  }

  /// Elements of type Stored, each converted to a float32.
  template <typename Stored, typename Convert>
  Tensor read_converted(const std::string& name, const StoredTensor& tensor, MemoryPool& memory,
                        Convert convert) const {
    std::vector<Stored> stored(static_cast<std::size_t>(tensor.bytes) / sizeof(Stored));
    read(name, tensor, stored.data());
    Tensor made(tensor.shape, DType::kFloat32, memory);
    std::transform(stored.begin(), stored.end(), made.data<float>(), convert);
    return made;
  }
};

SafetensorsFile::SafetensorsFile(std::shared_ptr<const Contents> contents)
    : contents_(std::move(contents)) {}

SafetensorsFile SafetensorsFile::open(const Path& path) {
  auto contents = std::make_shared<Contents>();
  contents->path = path;
  contents->file = open_file(path);
  contents->bytes = size_of_file(contents->file, path);
  if (contents->bytes < kLengthBytes) {
    fail("{} is no safetensors file: it has {} bytes, fewer than the header of one", path.string(),
         contents->bytes);
  }
  uint64_t length = 0;
  read_at(contents->file, path, 0, &length, kLengthBytes);
  if (length > static_cast<uint64_t>(kMaxHeaderBytes)) {
    fail(
        "{} is no safetensors file, or it is damaged: its first 8 bytes say that the header has {} "
        "bytes, and at most {} are allowed",
        path.string(), length, kMaxHeaderBytes);
  }
  const int64_t data_begin = kLengthBytes + static_cast<int64_t>(length);
  if (data_begin > contents->bytes) {
    fail("{}: the header ends at byte {}, but the file has {} bytes: it was cut off", path.string(),
         data_begin, contents->bytes);
  }
  std::string json(length, '\0');
  read_at(contents->file, path, kLengthBytes, json.data(), static_cast<int64_t>(length));
  contents->header = parse_safetensors_header(json, data_begin, contents->bytes - data_begin, path);

  auto& metadata = contents->header.metadata;
  if (const auto found = metadata.find(std::string(kChecksumKey)); found != metadata.end()) {
    contents->checksums = parse_checksums(found->second, contents->header.tensors, path);
    contents->has_checksums = true;
    metadata.erase(found);
  }
  return SafetensorsFile(std::move(contents));
}

const Path& SafetensorsFile::path() const { return contents_->path; }

int64_t SafetensorsFile::file_bytes() const { return contents_->bytes; }

const std::map<std::string, std::string>& SafetensorsFile::metadata() const {
  return contents_->header.metadata;
}

const std::map<std::string, StoredTensor>& SafetensorsFile::tensors() const {
  return contents_->header.tensors;
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors()) names.push_back(name);
  return names;
}

bool SafetensorsFile::contains(const std::string& name) const { return tensors().contains(name); }

const StoredTensor& SafetensorsFile::at(const std::string& name) const {
  const auto found = tensors().find(name);
  if (found == tensors().end()) fail("{}: there is no tensor {}", path().string(), shown(name));
  return found->second;
}

Tensor SafetensorsFile::read(const std::string& name, MemoryPool& memory) const {
  const StoredTensor& tensor = at(name);
  if (const std::optional<DType> dtype = dtype_called(tensor.dtype)) {
    Tensor made(tensor.shape, *dtype, memory);
    contents_->read(name, tensor, made.raw());
    return made;
  }
  if (tensor.dtype == "F16") {
    return contents_->read_converted<uint16_t>(name, tensor, memory, half_to_float);
  }
  if (tensor.dtype == "F64") {
    return contents_->read_converted<double>(
        name, tensor, memory, [](double value) { return static_cast<float>(value); });
  }
  fail("{}: tensor {} holds {}; expected one of F32, BF16, I8, F16, F64", path().string(),
       shown(name), tensor.dtype);
}

std::vector<int32_t> SafetensorsFile::read_integers(const std::string& name) const {
  const StoredTensor& tensor = at(name);
  if (tensor.dtype != kIntegers || tensor.shape.size() != 1) {
    fail("{}: tensor {} is {} {}; expected {} with one dimension", path().string(), shown(name),
         tensor.dtype, to_string(tensor.shape), kIntegers);
  }
  std::vector<int32_t> numbers(static_cast<std::size_t>(tensor.shape.front()));
  contents_->read(name, tensor, numbers.data());
  return numbers;
}

void SafetensorsFile::read_into(const std::string& name, const Tensor& destination) const {
  const StoredTensor& tensor = at(name);
  if (tensor.shape != destination.shape()) {
    fail("{}: tensor {} has the shape {}; expected {}", path().string(), shown(name),
         to_string(tensor.shape), to_string(destination.shape()));
  }
  if (!destination.contiguous()) fail("cannot read {} into rows that lie apart", shown(name));
  if (dtype_called(tensor.dtype) == destination.dtype()) {
    contents_->read(name, tensor, destination.raw());
  } else {
    destination.assign(read(name).to_vector());
  }
}

void SafetensorsFile::verify() const {
  if (!contents_->has_checksums) {
    fail("{}: there is no {} in its metadata to check the data by", path().string(), kChecksumKey);
  }
  std::vector<char> piece(1 << 20);
  for (const auto& [name, tensor] : tensors()) {
    uint32_t checksum = 0;
    for (int64_t done = 0; done < tensor.bytes;) {
      const auto bytes = std::min(tensor.bytes - done, static_cast<int64_t>(piece.size()));
      read_at(contents_->file, path(), tensor.offset + done, piece.data(), bytes);
      checksum = add_to_checksum(checksum, piece.data(), bytes);
      done += bytes;
    }
    contents_->check(name, checksum);
  }
}

// ------------------------------------------------------------------------------ writing

namespace {

/// What is to be written: one or the other.
struct Written {
  const Tensor* tensor = nullptr;
  const std::vector<int32_t>* integers = nullptr;

  std::string_view dtype() const {
    return tensor != nullptr ? spelled(tensor->dtype()) : kIntegers;
  }
  Shape shape() const { return tensor != nullptr ? tensor->shape() : Shape{std::ssize(*integers)}; }
  int64_t element_bytes() const {
    return tensor != nullptr ? size_of(tensor->dtype()) : int64_t{sizeof(int32_t)};
  }
  int64_t bytes() const { return count_of(shape()) * element_bytes(); }
};

/// Calls `take(data, bytes)` for the stretches of memory that hold it.
template <typename Take>
void for_each_stretch(const Written& written, Take&& take) {
  if (written.integers != nullptr) {
    take(written.integers->data(), written.bytes());
    return;
  }
  const Tensor& tensor = *written.tensor;
  if (tensor.contiguous()) {
    take(tensor.raw(), tensor.bytes());
    return;
  }
  const int64_t width = size_of(tensor.dtype());
  for (int64_t row = 0; row < tensor.rows(); ++row) {
    take(tensor.raw() + row * tensor.row_stride() * width, tensor.columns() * width);
  }
}

using ByName = std::map<std::string_view, Written>;
using FileOrder = std::vector<std::pair<std::string_view, Written>>;

ByName by_name(const NamedTensors& tensors, const NamedIntegers& integers, const Path& path) {
  ByName sorted;
  const auto add = [&](const std::string& name, const Written& written) {
    if (name == "__metadata__" || !sorted.emplace(name, written).second) {
      fail("cannot write {}: tensor {} is there twice", path.string(), shown(name));
    }
  };
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined()) fail("cannot write {}: tensor {} is empty", path.string(), shown(name));
    add(name, {.tensor = &tensor});
  }
  for (const auto& [name, numbers] : integers) add(name, {.integers = &numbers});
  return sorted;
}

std::string checksums_of(const ByName& tensors) {
  std::string text;
  for (const auto& [name, tensor] : tensors) {
    uint32_t checksum = 0;
    for_each_stretch(tensor, [&](const void* data, int64_t bytes) {
      checksum = add_to_checksum(checksum, data, bytes);
    });
    text += fmt::format("{}{:08x}", text.empty() ? "" : " ", checksum);
  }
  return text;
}

/// The widest elements first, so that every tensor is aligned to its elements; then by name.
FileOrder in_file_order(const ByName& tensors) {
  FileOrder order(tensors.begin(), tensors.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.second.element_bytes() > b.second.element_bytes();
  });
  return order;
}

std::string header_of(const FileOrder& order, const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header;
  header["__metadata__"] = metadata;
  int64_t begin = 0;
  for (const auto& [name, tensor] : order) {
    const int64_t end = begin + tensor.bytes();
    header[std::string(name)] = {
        {"dtype", tensor.dtype()}, {"shape", tensor.shape()}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump();
  constexpr std::size_t kAlignment = 64;  // of the data in the file
  text.append((kAlignment - (text.size() + kLengthBytes) % kAlignment) % kAlignment, ' ');
  return text;
}

}  // namespace

void write_safetensors(const Path& path, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata,
                       const NamedIntegers& integers) {
  const ByName sorted = by_name(tensors, integers, path);
  const auto order = in_file_order(sorted);
  auto complete = metadata;
  complete[std::string(kChecksumKey)] = checksums_of(sorted);
  std::string header;
  try {
    header = header_of(order, complete);
  } catch (const nlohmann::json::exception& error) {
    fail("cannot write {}: a name or its metadata is not valid UTF-8: {}", path.string(),
         shown(error));
  }
  const uint64_t length = header.size();
  if (length > static_cast<uint64_t>(kMaxHeaderBytes)) {
    fail("cannot write {}: its header would have {} bytes, and at most {} are allowed",
         path.string(), length, kMaxHeaderBytes);
  }
  AtomicFile file(path);
  file.write(&length, sizeof(length));
  file.write(header);
  for (const auto& [name, tensor] : order) {
    for_each_stretch(tensor, [&](const void* data, int64_t bytes) {
      file.write(data, static_cast<std::size_t>(bytes));
    });
  }
  file.commit();
}

}  // namespace attend
