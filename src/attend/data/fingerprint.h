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
  uint64_t value() const { return state_; }
  /// 16 hexadecimal digits.
  std::string hex() const { return fmt::format("{:016x}", state_); }

 private:
  uint64_t state_ = 0xCBF29CE484222325ULL;
};

/// Of a sequence whose parts are hashed apart and then joined in order: a polynomial of the
/// elements' hashes modulo 2^64 (Rabin and Karp 1987), so that it does not matter where the
/// sequence was cut.
class SequenceFingerprint {
 public:
  SequenceFingerprint() = default;
  /// One that value() and factor() had described.
  SequenceFingerprint(uint64_t value, uint64_t factor) : value_(value), factor_(factor) {}

  void add(uint64_t element) { append({element, kFactor}); }
  void append(const SequenceFingerprint& after) {
    value_ = value_ * after.factor_ + after.value_;
    factor_ *= after.factor_;
  }
  uint64_t value() const { return value_; }
  uint64_t factor() const { return factor_; }
  bool operator==(const SequenceFingerprint&) const = default;

 private:
  static constexpr uint64_t kFactor = 0x9E3779B97F4A7C15ULL;
  uint64_t value_ = 0;
  uint64_t factor_ = 1;  ///< kFactor to the power of how many elements there are
};

}  // namespace attend
