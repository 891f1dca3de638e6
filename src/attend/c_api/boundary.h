#pragma once

#include <exception>
#include <new>
#include <string_view>

#include "attend/base/error.h"
#include "attend/c_api.h"

namespace attend {

/// Thrown where a callback asked to stop.
class Cancelled : public std::exception {
 public:
  const char* what() const noexcept override { return "a callback asked to stop"; }
};

/// Keeps `message` for this thread's attend_last_error() and returns `status`.
attend_status report(attend_status status, std::string_view message) noexcept;

/// Does `work`, from which no exception comes out: it becomes a status and a message.
template <typename Work>
attend_status guarded(const Work& work) noexcept {
  try {
    work();
    return ATTEND_OK;
  } catch (const Cancelled& cancelled) {
    return report(ATTEND_CANCELLED, cancelled.what());
  } catch (const UsageError& error) {
    return report(ATTEND_WRONG_CALL, error.what());
  } catch (const std::bad_alloc&) {
    return report(ATTEND_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return report(ATTEND_FAILED, error.what());
  } catch (...) {
    return report(ATTEND_FAILED, "an exception that is no std::exception");
  }
}

/// For arguments that must not be NULL.
template <typename T>
void require(const T& argument, const char* name) {
  if (argument == nullptr) fail_usage("{} is NULL", name);
}

}  // namespace attend
