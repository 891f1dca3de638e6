#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "attend/io/safetensors.h"

namespace attend {

/// The most bytes of JSON that a header may have; the same as other readers'.
inline constexpr int64_t kMaxHeaderBytes = 100'000'000;

struct SafetensorsHeader {
  std::map<std::string, StoredTensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// Bytes of one element, or nothing for a dtype that is unknown.
std::optional<int64_t> element_bytes(std::string_view dtype);

/// Parses and checks the JSON of a header. The data starts at byte `data_begin` of the file and has
/// `data_bytes` bytes. Throws Error naming `path`, the tensor and what is wrong. Memory stays
/// within a small multiple of the text.
SafetensorsHeader parse_safetensors_header(std::string_view json, int64_t data_begin,
                                           int64_t data_bytes, const Path& path);

}  // namespace attend
