#pragma once

#include "attend/comm/communicator.h"
#include "attend/models/precision.h"
#include "attend/train/options.h"

namespace attend {

/// Rank 0 tells the others what to build before the first command; see Engine. `workers` is as the
/// user asked for, 0 for one a core of each rank's own.
void set_up_followers(Communicator& ranks, const TrainOptions& options, DType compute,
                      int64_t workers);

/// What a rank other than 0 does all its life: it builds the model that rank 0 describes, takes
/// part in training it, and returns when rank 0 ends it. It reads no file and writes none. Throws
/// Error.
void follow(Communicator& ranks);

/// Rank 0 ends the others.
void end_followers(Communicator& ranks);

}  // namespace attend
