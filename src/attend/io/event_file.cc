#include "attend/io/event_file.h"

#include <array>
#include <bit>
#include <cerrno>
#include <cmath>

#include <fcntl.h>
#include <unistd.h>

#include "attend/base/error.h"

namespace attend {
namespace {

constexpr std::array<uint32_t, 256> crc_table() {
  constexpr uint32_t kReversedPolynomial = 0x82F63B78;
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kReversedPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kCrcTable = crc_table();

template <typename Number>
std::string little_endian(Number number) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    bytes += static_cast<char>(static_cast<uint8_t>(number >> (8 * i)));
  }
  return bytes;
}

/// Opens a file that is not there yet. TensorBoard reads a folder's files in the order of their
/// names and knows them by "tfevents".
FileDescriptor create_event_file(const Path& folder, double wall_time, Path& path) {
  constexpr int kMostTries = 10'000;  // files of one second
  for (int i = 0; i < kMostTries; ++i) {
    path = folder / fmt::format("events.out.tfevents.{:010}.attend.{:04}",
                                static_cast<int64_t>(wall_time), i);
    FileDescriptor file(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666));
    if (file.get() >= 0) return file;
    if (errno != EEXIST) break;
  }
  fail_on_file("write", path, errno);
}

// Protocol Buffers' wire format, as far as events need it: a field is its number and its kind, then
// its value. By hand, because Debian's libsentencepiece exports a Protocol Buffers library of
// another version than Debian's own under the same names, and a process that loads both mixes them.
enum WireType : uint8_t { kVarint = 0, kEightBytes = 1, kLengthDelimited = 2, kFourBytes = 5 };

void put_varint(std::string& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>((value & 0x7F) | 0x80);
  to += static_cast<char>(value);
}

void put_key(std::string& to, uint32_t field, WireType type) {
  put_varint(to, (field << 3) | type);
}

void put_number(std::string& to, uint32_t field, int64_t value) {
  put_key(to, field, kVarint);
  put_varint(to, static_cast<uint64_t>(value));
}

/// A text, or a message within one.
void put_bytes(std::string& to, uint32_t field, std::string_view bytes) {
  put_key(to, field, kLengthDelimited);
  put_varint(to, bytes.size());
  to += bytes;
}

// The fields' numbers are those of tensorflow/core/util/event.proto and framework/summary.proto.
enum EventField : uint32_t {
  kWallTime = 1,
  kStep = 2,
  kFileVersion = 3,
  kSummary = 5,
  kSession = 7
};
enum SummaryField : uint32_t { kValue = 1 };
enum ValueField : uint32_t { kTag = 1, kSimpleValue = 2 };
enum SessionField : uint32_t { kStatus = 1 };
constexpr int64_t kSessionStart = 1;

/// An event with nothing in it yet.
std::string event_of(double wall_time, int64_t step) {
  std::string event;
  put_key(event, kWallTime, kEightBytes);
  event += little_endian(std::bit_cast<uint64_t>(wall_time));
  put_number(event, kStep, step);
  return event;
}

std::string value_of(const Scalar& scalar) {
  std::string value;
  put_bytes(value, kTag, scalar.tag);
  put_key(value, kSimpleValue, kFourBytes);
  return value + little_endian(std::bit_cast<uint32_t>(scalar.value));
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) {
    crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<uint8_t>(byte)) & 0xFF];
  }
  return ~crc;
}

uint32_t masked_crc32c(std::string_view bytes) {
  constexpr uint32_t kMask = 0xa282ead8;
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + kMask;
}

EventFile::EventFile(const Path& folder, double wall_time, int64_t first_step) {
  ensure_directory(folder);
  file_ = create_event_file(folder, wall_time, path_);
  std::string version = event_of(wall_time, 0);
  put_bytes(version, kFileVersion, "brain.Event:2");
  write_record(version);
  std::string status, start = event_of(wall_time, first_step);
  put_number(status, kStatus, kSessionStart);
  put_bytes(start, kSession, status);
  write_record(start);
}

void EventFile::add(double wall_time, int64_t step, const std::vector<Scalar>& scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) {
    if (std::isfinite(scalar.value)) put_bytes(summary, kValue, value_of(scalar));
  }
  if (summary.empty()) return;
  std::string event = event_of(wall_time, step);
  put_bytes(event, kSummary, summary);
  write_record(event);
}

void EventFile::write_record(std::string_view message) {
  if (problem_ != 0) return;
  std::string record = little_endian(static_cast<uint64_t>(message.size()));
  record += little_endian(masked_crc32c(record));
  record += message;
  record += little_endian(masked_crc32c(message));
  std::string_view rest = record;
  while (!rest.empty()) {
    const ssize_t written = ::write(file_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      problem_ = errno;
      return;
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace attend
