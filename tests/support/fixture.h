#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "attend/base/error.h"
#include "attend/tensor/tensor.h"

namespace attend::testing {

/// tests/fixtures/<name>.safetensors, written by a script of tests/reference/. A reader of its own,
/// a dozen lines, so that the tests of the engine do not stand on the library's files.
class Fixture {
 public:
  explicit Fixture(const std::string& name)
      : path_(std::string(ATTEND_SOURCE_DIR) + "/tests/fixtures/" + name + ".safetensors") {
    std::ifstream file(path_, std::ios::binary);
    if (!file) fail("{}: cannot be read; tests/reference/ makes it", path_);
    const std::string all{std::istreambuf_iterator<char>(file), {}};
    uint64_t length = 0;
    std::memcpy(&length, all.data(), sizeof length);
    header_ = nlohmann::json::parse(all.substr(8, length));
    data_ = all.substr(8 + length);
  }

  bool contains(const std::string& name) const { return header_.contains(name); }
  /// The names that begin with `prefix`, without it.
  std::vector<std::string> names(const std::string& prefix) const {
    std::vector<std::string> found;
    for (const auto& [name, entry] : header_.items()) {
      if (name.starts_with(prefix)) found.push_back(name.substr(prefix.size()));
    }
    return found;
  }
  Shape shape(const std::string& name) const { return find(name).at("shape").get<Shape>(); }
  std::vector<float> values(const std::string& name) const { return read<float>(name, "F32"); }
  std::vector<int32_t> integers(const std::string& name) const {
    return read<int32_t>(name, "I32");
  }
  double number(const std::string& name) const { return read<double>(name, "F64").at(0); }
  std::string metadata(const std::string& key) const {
    return find("__metadata__").at(key).get<std::string>();
  }
  Tensor tensor(const std::string& name, DType dtype = DType::kFloat32) const {
    const Tensor made(shape(name), dtype);
    made.assign(values(name));
    return made;
  }

 private:
  const nlohmann::json& find(const std::string& name) const {
    if (!header_.contains(name)) fail("{} lacks '{}'", path_, name);
    return header_.at(name);
  }
  template <typename T>
  std::vector<T> read(const std::string& name, const char* dtype) const {
    const nlohmann::json& entry = find(name);
    if (entry.at("dtype") != dtype) fail("'{}' of {} is not {}", name, path_, dtype);
    const auto begin = entry.at("data_offsets").at(0).get<std::size_t>();
    const auto end = entry.at("data_offsets").at(1).get<std::size_t>();
    std::vector<T> values((end - begin) / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), data_.data() + begin, end - begin);
    return values;
  }

  std::string path_;
  nlohmann::json header_;
  std::string data_;
};

}  // namespace attend::testing
