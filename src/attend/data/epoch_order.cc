#include "attend/data/epoch_order.h"

#include <algorithm>
#include <cmath>

#include "attend/base/random.h"

namespace attend {
namespace {

/// Draws [begin, end) of the endless row of passes over one corpus.
struct Draws {
  int64_t begin;
  int64_t end;
};

Draws draws_of(const CorpusPart& part, int64_t epoch) {
  const double an_epoch = part.weight * static_cast<double>(part.end - part.begin);
  const auto until = [&](int64_t epochs) {
    return static_cast<int64_t>(std::floor(an_epoch * static_cast<double>(epochs)));
  };
  return {until(epoch), until(epoch + 1)};
}

}  // namespace

int64_t count_pairs(std::span<const CorpusPart> parts, int64_t epoch) {
  int64_t count = 0;
  for (const CorpusPart& part : parts) {
    const Draws draws = draws_of(part, epoch);
    count += draws.end - draws.begin;
  }
  return count;
}

EpochOrder::EpochOrder(std::span<const CorpusPart> parts, uint64_t seed, int64_t epoch)
    : shuffled_(count_pairs(parts, epoch), mix_seed(seed, epoch)) {
  int64_t before = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const CorpusPart& part = parts[i];
    const int64_t size = part.end - part.begin;
    const Draws draws = draws_of(part, epoch);
    // The end of a pass that began in an epoch before, whole passes, and the beginning of one.
    for (int64_t draw = draws.begin; draw < draws.end;) {
      const int64_t pass = draw / size, in_pass = draw % size;
      const bool whole = in_pass == 0 && draws.end - draw >= size;
      const int64_t end =
          whole ? draws.end - draws.end % size : std::min(draws.end, (pass + 1) * size);
      const uint64_t key = mix_seed(mix_seed(~seed, i), pass);
      runs_.push_back({before, part.begin, in_pass, Permutation(size, key), whole});
      before += end - draw;
      draw = end;
    }
  }
}

int64_t EpochOrder::operator[](int64_t position) const {
  const int64_t draw = shuffled_[position];
  const auto after = std::upper_bound(runs_.begin(), runs_.end(), draw,
                                      [](int64_t a, const Run& b) { return a < b.draws_before; });
  const Run& run = *std::prev(after);
  const int64_t place = draw - run.draws_before;
  if (run.whole) return run.first_pair + place % run.pass.size();
  return run.first_pair + run.pass[run.first_in_pass + place];
}

}  // namespace attend
