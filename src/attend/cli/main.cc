#include <string>
#include <vector>

#include "attend/cli/command.h"

int main(int argc, char** argv) {
  return attend::run_attend(std::vector<std::string>(argv + 1, argv + argc));
}
