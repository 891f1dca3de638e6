#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace attend {

/// A job that cannot go on. The message is for the person who started it: which file, line or
/// option, what was found, what was expected, and what to do. The command exits with status 1.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A wrong call: an option, a combination of options, or a configuration that cannot be meant.
/// The command exits with status 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// Throws Error with a message formatted as fmt::format does.
template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(format, std::forward<Args>(args)...));
}

/// Throws UsageError with a message formatted as fmt::format does.
template <typename... Args>
[[noreturn]] void fail_usage(fmt::format_string<Args...> format, Args&&... args) {
  throw UsageError(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace attend
