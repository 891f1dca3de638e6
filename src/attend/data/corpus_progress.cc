#include "attend/data/corpus_progress.h"

#include <fmt/format.h>

namespace attend {

std::string to_string(const CorpusProgress& progress) {
  std::string text = fmt::format("reading the training text: {} pairs, {:.1f}%", progress.pairs,
                                 100 * progress.share);
  constexpr double kMinute = 60;
  if (progress.seconds_left < 0) return text;
  if (progress.seconds_left < 2 * kMinute) {
    return text + fmt::format(", {:.0f} s left", progress.seconds_left);
  }
  return text + fmt::format(", {:.0f} min left", progress.seconds_left / kMinute);
}

}  // namespace attend
