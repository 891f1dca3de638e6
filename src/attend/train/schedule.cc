#include "attend/train/schedule.h"

#include <algorithm>
#include <cmath>

namespace attend {

double learning_rate(const TrainOptions& options, int64_t step, double progress) {
  const double now = static_cast<double>(step);
  const double warmup = static_cast<double>(std::max<int64_t>(options.warmup, 1));
  const double rise = std::min(1.0, now / warmup);
  switch (options.schedule) {
    case Schedule::kPaper:
      return options.learning_rate / std::sqrt(static_cast<double>(options.model.d_model)) *
             std::min(1 / std::sqrt(now), now * std::pow(warmup, -1.5));
    case Schedule::kInverseSqrt:
      return options.learning_rate * std::min(rise, std::sqrt(warmup / now));
    case Schedule::kLinear:
      return options.learning_rate * rise * std::max(0.0, 1 - progress);
    case Schedule::kConstant:
      break;
  }
  return options.learning_rate * rise;
}

double progress_of(const TrainingAmount& done, const TrainLimit& limit) {
  if (limit.epochs) return done.epochs / std::max(*limit.epochs, 1e-9);
  const auto share = [](int64_t part, int64_t whole) {
    return static_cast<double>(part) / static_cast<double>(std::max<int64_t>(whole, 1));
  };
  if (limit.updates) return share(done.updates, *limit.updates);
  if (limit.tokens) return share(done.tokens, *limit.tokens);
  if (limit.seconds) return done.seconds / std::max(*limit.seconds, 1e-9);
  return 0;
}

bool reached(const TrainingAmount& done, const TrainLimit& limit) {
  if (limit.updates) return done.updates >= *limit.updates;
  if (limit.tokens) return done.tokens >= *limit.tokens;
  // An epoch's share of pairs adds up to a whole one but for rounding.
  return progress_of(done, limit) >= 1 - 1e-9;
}

bool due(const TrainingAmount& done, const TrainingAmount& last, const TrainLimit& every) {
  return reached({done.epochs - last.epochs, done.updates - last.updates, done.tokens - last.tokens,
                  done.seconds - last.seconds},
                 every);
}

}  // namespace attend
