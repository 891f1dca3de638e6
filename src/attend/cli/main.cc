#include <unistd.h>

#include <csignal>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "attend/cli/command.h"
#include "attend/cli/output.h"

namespace {

/// Allocates nothing: there may be no memory.
[[noreturn]] void end_with(std::string_view message) {
  for (const std::string_view part :
       {std::string_view("error: "), message, std::string_view("\n")}) {
    [[maybe_unused]] const auto written = write(STDERR_FILENO, part.data(), part.size());
  }
  attend::remove_unfinished_output();
  _exit(1);
}

/// At the first refusal: libraries that meet it deeper down end the process without a word, or try
/// for ever.
[[noreturn]] void on_no_memory() {
  end_with(
      "out of memory: the system refused more; use a smaller batch or model or fewer workers, or "
      "raise the limit (ulimit -v)");
}

/// What nobody caught, in a library's thread say.
[[noreturn]] void on_terminate() {
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
  } catch (const std::exception& error) {
    end_with(error.what());
  } catch (...) {
  }
  end_with("the program ended for a reason that it does not know");
}

}  // namespace

int main(int argc, char** argv) {
  // A file that may not grow any more (ulimit -f) is an error of writing, with a name.
  std::signal(SIGXFSZ, SIG_IGN);
  std::set_new_handler(on_no_memory);
  std::set_terminate(on_terminate);
  return attend::run_attend(std::vector<std::string>(argv + 1, argv + argc));
}
