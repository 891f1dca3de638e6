#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>

#include <zlib.h>

namespace attend {

/// Bytes from somewhere. Not zlib's gzFile: that fills its whole buffer before it returns, and a
/// user who types a line into a pipe would wait for 8 KiB more.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Reads what is there, at least one byte; 0 at the end only. Throws Error.
  virtual std::size_t read(std::span<char> into) = 0;
  /// How many bytes of where they come from, such as a compressed file, have been used.
  virtual int64_t position() const = 0;
};

/// An open file, or standard input for "-". Throws Error: missing, a directory, not readable.
std::unique_ptr<ByteSource> open_bytes(const std::string& path);

/// The bytes of a stream, which must outlive the source.
std::unique_ptr<ByteSource> stream_bytes(std::istream& stream, std::string name);

/// The bytes of `inner`, decompressed where they start as gzip does.
std::unique_ptr<ByteSource> decompressed(std::unique_ptr<ByteSource> inner, std::string name);

}  // namespace attend
