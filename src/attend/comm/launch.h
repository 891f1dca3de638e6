#pragma once

#include <cstdint>
#include <memory>

#include "attend/comm/communicator.h"

namespace attend {

/// Whether mpirun (or a like starter) started this process as one of several.
bool started_as_rank();

/// How many of the job's processes run on this machine: 1 where nothing says otherwise.
int64_t ranks_on_this_machine();

/// Joins the other ranks that mpirun started; null where it started this process alone, or not at
/// all. MPI is a module of its own (attend_mpi.so), loaded here and nowhere else, so that a plain
/// `attend` does not pay for it. Throws Error where the module is not installed.
std::unique_ptr<Communicator> join_ranks();

}  // namespace attend
