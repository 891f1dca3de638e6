#include "attend/train/progress.h"

#include <cmath>

#include <fmt/format.h>

namespace attend {
namespace {

std::string duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole >= 3600) return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
  if (whole >= 60) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}s", whole);
}

}  // namespace

double ValidationScores::criterion(ValidationMetric metric) const {
  if (metric == ValidationMetric::kBleu) return bleu.value();
  if (metric == ValidationMetric::kChrf) return chrf.value();
  if (metric == ValidationMetric::kPerplexity) return -perplexity;
  return -loss;
}

std::string to_string(const TrainProgress& progress) {
  std::string text =
      fmt::format("update {}, epoch {:.2f}, loss {:.3f}, perplexity {:.2f}", progress.done.updates,
                  progress.done.epochs, progress.loss, progress.perplexity);
  if (progress.divergence) text += fmt::format(", divergence {:.3f}", *progress.divergence);
  text += fmt::format(", {:.0f} tokens/s, learning rate {:.3g}, gradient norm {:.2f}",
                      progress.tokens_per_second, progress.learning_rate, progress.gradient_norm);
  text += fmt::format(", {} MiB", progress.peak_resident_bytes >> 20);
  if (progress.skipped_updates > 0) {
    text += fmt::format(", {} skipped", progress.skipped_updates);
  }
  if (progress.seconds_left >= 0) text += ", " + duration(progress.seconds_left) + " left";
  return text;
}

}  // namespace attend
