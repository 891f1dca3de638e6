#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attend/base/files.h"

namespace attend {

/// CRC-32C (Castagnoli, polynomial 0x1EDC6F41), as RFC 3720 has it.
uint32_t crc32c(std::string_view bytes);
/// The CRC-32C as TFRecord files store it: rotated right by 15 bits, plus 0xa282ead8.
uint32_t masked_crc32c(std::string_view bytes);

/// A number with a name, of one step.
struct Scalar {
  std::string tag;  ///< "train/loss"
  float value = 0;
};

/// One of TensorBoard's event files: TFRecords of Event messages. A record is its length (8 bytes),
/// the masked CRC of that, the message and the masked CRC of that, little-endian. Nothing is
/// buffered. A full disk is not an Error: problem() says what is wrong, and as no reader finds its
/// way behind a record that is cut off, nothing more is written then.
class EventFile {
 public:
  /// A new file in `folder`, which is made where it is missing, with a name that sorts behind those
  /// that are there. It tells readers to forget what earlier files say of steps from `first_step`
  /// on: a resumed run repeats them. Throws Error where it cannot be made.
  EventFile(const Path& folder, double wall_time, int64_t first_step);

  /// wall_time: seconds since 1970. Values that are not finite are left out.
  void add(double wall_time, int64_t step, const std::vector<Scalar>& scalars);
  /// The errno of the write that failed; 0 where none did.
  int problem() const { return problem_; }
  const Path& path() const { return path_; }

 private:
  void write_record(std::string_view message);

  Path path_;
  FileDescriptor file_;
  int problem_ = 0;
};

}  // namespace attend
