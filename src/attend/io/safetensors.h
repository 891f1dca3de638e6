#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attend/base/files.h"
#include "attend/tensor/tensor.h"

namespace attend {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
/// Lists of whole numbers, such as token ids: tensors of one dimension, I32.
using NamedIntegers = std::vector<std::pair<std::string, std::vector<int32_t>>>;

/// The key of `__metadata__` under which write_safetensors keeps the CRC-32 of each tensor's bytes:
/// eight hexadecimal digits a tensor, in the order of their names, with a space between.
inline constexpr std::string_view kChecksumKey = "attend_crc32";

/// A tensor as the file describes it.
struct StoredTensor {
  std::string dtype;  ///< as safetensors spells it: "F32", "BF16", "F16", "I64", ...
  Shape shape;
  int64_t offset = 0;  ///< of the first byte, from the start of the file
  int64_t bytes = 0;
};

/// A safetensors file (https://github.com/huggingface/safetensors), opened for reading. open()
/// checks the whole header before anything is used (contract 19): its length and syntax, every
/// dtype, every shape against its bytes, that the tensors cover the data without holes or overlaps,
/// and names given twice. Every Error names the file, the tensor and what was wrong. The open file
/// stays the same when another is renamed over its path. Copies share the open file.
class SafetensorsFile {
 public:
  static SafetensorsFile open(const Path& path);

  const Path& path() const;
  int64_t file_bytes() const;
  /// The strings of `__metadata__`, the checksums left out.
  const std::map<std::string, std::string>& metadata() const;
  /// The tensors by name.
  const std::map<std::string, StoredTensor>& tensors() const;
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const;
  /// These throw Error when there is no such tensor.
  const StoredTensor& at(const std::string& name) const;
  const Shape& shape(const std::string& name) const { return at(name).shape; }
  const std::string& dtype(const std::string& name) const { return at(name).dtype; }

  /// A copy: float32, bfloat16 or int8 as stored, F16 and F64 as float32. Other dtypes are an
  /// Error, and so are bytes that do not have the checksum that the file states.
  Tensor read(const std::string& name, MemoryPool& memory = MemoryPool::global()) const;
  /// A copy of an I32 tensor of one dimension; throws Error for any other.
  std::vector<int32_t> read_integers(const std::string& name) const;
  /// The same into a contiguous tensor that is there already, converting to its dtype. Throws Error
  /// where the shapes differ.
  void read_into(const std::string& name, const Tensor& destination) const;
  /// Reads all data against the checksums. Throws Error naming the first tensor that is damaged, or
  /// with a file that has none.
  void verify() const;

 private:
  struct Contents;
  explicit SafetensorsFile(std::shared_ptr<const Contents> contents);
  std::shared_ptr<const Contents> contents_;
};

/// Writes float32, bfloat16 and int8 tensors as an AtomicFile, with checksums. Equal tensors
/// and metadata make equal bytes, whatever the order given: the widest elements first, then by
/// name. Throws Error for a name given twice.
void write_safetensors(const Path& path, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata = {},
                       const NamedIntegers& integers = {});

}  // namespace attend
