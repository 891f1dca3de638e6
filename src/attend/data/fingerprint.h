#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace attend {

/// FNV-1a (Fowler, Noll and Vo), 64 bits: tells files and data apart that were not made to collide.
class Fingerprint {
 public:
  void add(std::string_view bytes) {
    for (const char byte : bytes) {
      state_ = (state_ ^ static_cast<unsigned char>(byte)) * 0x100000001B3ULL;
    }
  }
  /// 16 hexadecimal digits.
  std::string hex() const { return fmt::format("{:016x}", state_); }

 private:
  uint64_t state_ = 0xCBF29CE484222325ULL;
};

}  // namespace attend
