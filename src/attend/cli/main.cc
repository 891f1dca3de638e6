#include <csignal>
#include <string>
#include <vector>

#include "attend/cli/command.h"

int main(int argc, char** argv) {
  // A file that may not grow any more (ulimit -f) is an error of writing, with a name.
  std::signal(SIGXFSZ, SIG_IGN);
  return attend::run_attend(std::vector<std::string>(argv + 1, argv + argc));
}
