#pragma once

#include <vector>

#include "attend/comm/communicator.h"

namespace attend {

/// Ranks that are threads of one process: what runs over MPI, without it. Each communicator is one
/// rank's; they may live and end on any thread.
std::vector<std::unique_ptr<Communicator>> make_local_communicators(int size);

}  // namespace attend
