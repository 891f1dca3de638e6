#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attend/data/utf8.h"

namespace attend {

class ByteSource;

/// Gives the next line of a text, without its end; false where there is none.
using NextLine = std::function<bool(std::string& line)>;

struct ReadOptions {
  /// Refuse what is no text: a NUL byte anywhere, or the first bytes of UTF-16 or of an archive.
  /// Set it for training data; what a user translates is carried whatever it is.
  bool refuse_binary = false;
  /// A longer line is an Error, so that a file without line ends cannot take all memory.
  int64_t max_line_bytes = int64_t{1} << 28;
};

/// Reads text line by line (contracts 2 and 11). A line ends at '\n' and nowhere else; a '\r'
/// before it is dropped; a byte-order mark at the start is dropped; the last line needs no '\n'.
/// Gzip is recognised by its first bytes, not by the name, several members end to end included.
/// Reading returns what a pipe has so far: a line is given as soon as its '\n' is there. Memory:
/// one line and two buffers of 64 KiB.
///
/// Throws Error naming the file, and the line where there is one, when it cannot be read: missing,
/// a directory, no permission, damaged or cut off gzip, a line too long, not text.
class LineReader {
 public:
  /// A path, or "-" for standard input.
  explicit LineReader(const std::string& path, ReadOptions options = {});
  /// A stream, named `name` in errors. It must outlive the reader.
  LineReader(std::istream& stream, std::string name, ReadOptions options = {});
  LineReader(LineReader&&) noexcept;
  LineReader& operator=(LineReader&&) noexcept;
  ~LineReader();

  /// The next line without its end; false where there is none.
  bool next(std::string& line);
  /// The number of the line that next() gave last, from 1; 0 before the first. At the end: how many
  /// lines there are.
  int64_t line_number() const { return line_number_; }
  /// How many bytes of the file, as it lies on the disk, have been used so far; where it is
  /// compressed, about so many.
  int64_t bytes_read() const;
  /// For messages: the path, or "standard input".
  const std::string& name() const { return name_; }

 private:
  /// Moves buffered bytes up to a line end into `line`; true where it found one.
  bool take_line(std::string& line);
  void finish_line(std::string& line, bool ended);
  void refuse_binary_start(std::string_view start) const;
  void refuse_nul(std::string_view line) const;

  std::string name_;
  ReadOptions options_;
  std::unique_ptr<ByteSource> source_;
  std::string buffer_;
  std::size_t used_ = 0;      ///< bytes of buffer_ that have been given
  int64_t bytes_filled_ = 0;  ///< that were ever in buffer_
  int64_t line_number_ = 0;
};

/// All lines of a file or standard input.
std::vector<std::string> read_lines(const std::string& path, ReadOptions options = {});

}  // namespace attend
