#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "attend/base/files.h"

namespace attend::testing {

/// An event as it is read back.
struct ReadEvent {
  double wall_time = 0;
  int64_t step = 0;
  std::string file_version;
  bool starts_session = false;
  std::map<std::string, float> scalars;
};

/// CRC-32C bit by bit, apart from the table of the writer.
inline uint32_t slow_crc32c(std::string_view bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78 : 0);
  }
  return ~crc;
}

/// A reader of Protocol Buffers and of records, which throws std::runtime_error for what is
/// damaged.
class EventReader {
 public:
  static std::vector<ReadEvent> read(const Path& path) {
    const std::string bytes = read_file(path, int64_t{1} << 30);
    std::string_view rest = bytes;
    std::vector<ReadEvent> events;
    while (!rest.empty()) events.push_back(event(record(rest)));
    return events;
  }
  /// Of all files of a folder in the order of their names, as TensorBoard reads them.
  static std::vector<ReadEvent> read_folder(const Path& folder) {
    std::vector<Path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    std::vector<ReadEvent> events;
    for (const Path& path : paths) {
      for (ReadEvent& each : read(path)) {
        if (each.starts_session) {  // what comes again is forgotten
          std::erase_if(events, [&](const ReadEvent& old) { return old.step >= each.step; });
        }
        events.push_back(std::move(each));
      }
    }
    return events;
  }

 private:
  static std::string_view take(std::string_view& from, std::size_t bytes) {
    if (from.size() < bytes) throw std::runtime_error("cut off");
    const std::string_view taken = from.substr(0, bytes);
    from.remove_prefix(bytes);
    return taken;
  }
  template <typename Number>
  static Number number(std::string_view& from) {
    Number value;
    std::memcpy(&value, take(from, sizeof value).data(), sizeof value);
    return value;
  }
  static void check(std::string_view bytes, uint32_t masked) {
    const uint32_t rotated = masked - 0xa282ead8;
    if (((rotated >> 17) | (rotated << 15)) != slow_crc32c(bytes)) {
      throw std::runtime_error("checksum");
    }
  }
  static std::string_view record(std::string_view& from) {
    const std::string_view length = from.substr(0, 8);
    const auto bytes = number<uint64_t>(from);
    check(length, number<uint32_t>(from));
    const std::string_view message = take(from, bytes);
    check(message, number<uint32_t>(from));
    return message;
  }
  static uint64_t varint(std::string_view& from) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(from, 1)[0]);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
  }
  static std::string_view text(std::string_view& from) { return take(from, varint(from)); }
  static void scalar(std::string_view value, ReadEvent& to) {
    std::string tag;
    while (!value.empty()) {
      const uint64_t key = varint(value);
      if (key == (1 << 3 | 2)) tag = text(value);
      if (key == (2 << 3 | 5)) to.scalars[tag] = number<float>(value);
    }
  }
  static ReadEvent event(std::string_view message) {
    ReadEvent event;
    while (!message.empty()) {
      const uint64_t key = varint(message);
      if (key == (1 << 3 | 1)) {
        event.wall_time = number<double>(message);
      } else if (key == (2 << 3 | 0)) {
        event.step = static_cast<int64_t>(varint(message));
      } else if (key == (3 << 3 | 2)) {
        event.file_version = text(message);
      } else if (key == (5 << 3 | 2)) {
        std::string_view summary = text(message);
        while (!summary.empty()) {
          if (varint(summary) != (1 << 3 | 2)) throw std::runtime_error("no value");
          scalar(text(summary), event);
        }
      } else if (key == (7 << 3 | 2)) {
        event.starts_session = text(message) == "\x08\x01";
      } else {
        throw std::runtime_error("an unknown field");
      }
    }
    return event;
  }
};

}  // namespace attend::testing
