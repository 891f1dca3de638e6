#pragma once

#include <cstdint>

#include "attend/train/options.h"
#include "attend/train/progress.h"

namespace attend {

/// The learning rate of an update. `step` counts from 1; `progress` is the share of the run that is
/// done, from 0 to 1 (for the linear schedule, which needs an end).
double learning_rate(const TrainOptions& options, int64_t step, double progress);

/// done / limit in the limit's unit; 0 where there is no limit.
double progress_of(const TrainingAmount& done, const TrainLimit& limit);
/// Whether as much as the limit is done; never where there is no limit.
bool reached(const TrainingAmount& done, const TrainLimit& limit);
/// Whether what happens every `every`, and happened last at `last`, is to happen again.
bool due(const TrainingAmount& done, const TrainingAmount& last, const TrainLimit& every);

}  // namespace attend
