#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "attend/base/error.h"

namespace attend {

/// Values in a row as bytes, to be sent to a rank of the same program on the same type of CPU: put
/// in and got out in one order.
class Message {
 public:
  Message() = default;
  explicit Message(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  const std::vector<std::byte>& bytes() const { return bytes_; }

  template <typename T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    append(&value, sizeof(T));
  }
  template <typename T>
  void put(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    put(values.size());
    append(values.data(), values.size() * sizeof(T));
  }
  void put(const std::string& text) { put(std::vector<char>(text.begin(), text.end())); }

  /// Throws Error where the message is at its end.
  template <typename T>
  T get() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    take(&value, sizeof(T), 1);
    return value;
  }
  template <typename T>
  std::vector<T> get_vector() {
    const auto size = get<std::size_t>();
    check(sizeof(T), size);
    std::vector<T> values(size);
    take(values.data(), sizeof(T), size);
    return values;
  }
  std::string get_text() {
    const auto characters = get_vector<char>();
    return {characters.begin(), characters.end()};
  }

 private:
  void append(const void* from, std::size_t bytes) {
    const std::size_t end = bytes_.size();
    bytes_.resize(end + bytes);
    if (bytes > 0) std::memcpy(bytes_.data() + end, from, bytes);
  }
  void check(std::size_t each, std::size_t count) const {
    if (count <= (bytes_.size() - next_) / each) return;
    fail("a message between ranks ends too early: do all machines have the same attend?");
  }
  void take(void* to, std::size_t each, std::size_t count) {
    check(each, count);
    if (count > 0) std::memcpy(to, bytes_.data() + next_, each * count);
    next_ += each * count;
  }

  std::vector<std::byte> bytes_;
  std::size_t next_ = 0;
};

}  // namespace attend
