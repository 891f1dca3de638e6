#include <csignal>
#include <string>
#include <vector>

#include "attend/cli/command.h"

int main(int argc, char** argv) {
  // A reader that goes away (attend translate | head) is an error of writing, not a silent end.
  std::signal(SIGPIPE, SIG_IGN);
  return attend::run_attend(std::vector<std::string>(argv + 1, argv + argc));
}
