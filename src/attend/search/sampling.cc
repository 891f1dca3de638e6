#include "attend/search/sampling.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "attend/base/random.h"

namespace attend {

Sampler::Sampler(std::span<const int32_t> source, const SearchOptions& options)
    : temperature_(options.temperature),
      top_k_(options.sampling_top_k),
      top_p_(options.sampling_top_p),
      key_(mix_seed(options.seed, source.size())) {
  for (const int32_t token : source) key_ = mix_seed(key_, static_cast<uint64_t>(token));
}

double Sampler::uniform(int64_t sample, int64_t position) const {
  const auto words =
      philox4x32({static_cast<uint32_t>(position), static_cast<uint32_t>(sample), 0, 0},
                 {static_cast<uint32_t>(key_), static_cast<uint32_t>(key_ >> 32)});
  const uint64_t bits = (static_cast<uint64_t>(words[0]) << 32 | words[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

/// Of equal ones the first.
bool Sampler::likelier(const Choice& a, const Choice& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.index < b.index;
}

void Sampler::keep_best(std::size_t count) {
  if (count >= choices_.size()) return;
  const auto end = choices_.begin() + static_cast<std::ptrdiff_t>(count);
  std::nth_element(choices_.begin(), end, choices_.end(), likelier);
  choices_.erase(end, choices_.end());
}

void Sampler::keep_nucleus() {
  double sum = 0;
  for (const Choice& each : choices_) sum += each.weight;
  // A heap, since a nucleus is small as a rule and the vocabulary is not.
  const auto less_likely = [](const Choice& a, const Choice& b) { return likelier(b, a); };
  std::make_heap(choices_.begin(), choices_.end(), less_likely);
  auto end = choices_.end();
  for (double kept = 0; end != choices_.begin() && kept < top_p_ * sum; --end) {
    kept += choices_.front().weight;
    std::pop_heap(choices_.begin(), end, less_likely);
  }
  choices_.erase(choices_.begin(), end);
}

std::size_t Sampler::draw(std::span<const double> log_probs, int64_t sample, int64_t position) {
  const double best = *std::max_element(log_probs.begin(), log_probs.end());
  choices_.clear();
  for (std::size_t i = 0; i < log_probs.size(); ++i) {
    choices_.push_back({std::exp((log_probs[i] - best) / temperature_), i});
  }
  if (top_k_ > 0) keep_best(static_cast<std::size_t>(top_k_));
  if (top_p_ < 1) keep_nucleus();
  if (choices_.size() < log_probs.size()) {
    // An order that does not depend on the standard library's algorithms.
    std::sort(choices_.begin(), choices_.end(),
              [](const Choice& a, const Choice& b) { return a.index < b.index; });
  }
  double sum = 0;
  for (const Choice& each : choices_) sum += each.weight;
  double left = uniform(sample, position) * sum;
  for (const Choice& each : choices_) {
    if (left < each.weight) return each.index;
    left -= each.weight;
  }
  return std::max_element(choices_.begin(), choices_.end(),
                          [](const Choice& a, const Choice& b) { return likelier(b, a); })
      ->index;  // rounding ate the last of the sum
}

}  // namespace attend
