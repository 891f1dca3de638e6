#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attend/comm/communicator.h"

namespace attend {

class Command;

/// Rank 0's hold on the ranks that it leads.
class RankSession {
 public:
  explicit RankSession(std::unique_ptr<Communicator> ranks) : ranks_(std::move(ranks)) {}
  Communicator& communicator() { return *ranks_; }
  /// Lets the others go, when all is done. A second call does nothing.
  void end();

 private:
  std::unique_ptr<Communicator> ranks_;
  bool ended_ = false;
};

/// Runs a command whose job ranks do together: on rank 0, or where mpirun has not started this, as
/// everywhere; on the others it only follows rank 0, reads no option and no file, and says nothing
/// but what went wrong. Gives the exit status. Whatever goes wrong on one rank ends all.
int run_in_ranks(Command& command, const std::vector<std::string>& arguments);

}  // namespace attend
