#include "attend/data/batch_plan.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <tuple>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/random.h"

namespace attend {
namespace {

// The streams of random numbers that a seed gives.
constexpr uint64_t kPassStream = 1, kEpochStream = 2, kBatchStream = 3;

/// Fisher and Yates, as in Knuth, The Art of Computer Programming, algorithm 3.4.2P.
template <typename Element>
void shuffle(std::vector<Element>& elements, RandomGenerator random) {
  for (std::size_t i = elements.size(); i > 1; --i) {
    std::swap(elements[i - 1], elements[random.uniform_index(i)]);
  }
}

/// Places [begin, end) in the endless row of passes over one corpus.
struct Draws {
  int64_t begin;
  int64_t end;
};

Draws draws_of(const ParallelCorpus::Part& part, int64_t epoch) {
  const double an_epoch = part.weight * static_cast<double>(part.end - part.begin);
  const auto until = [&](int64_t epochs) {
    return static_cast<int64_t>(std::floor(an_epoch * static_cast<double>(epochs)));
  };
  return {until(epoch), until(epoch + 1)};
}

/// Appends a pass over a part, or the places [begin, end) of it. The order of a whole pass does not
/// matter, because the epoch is shuffled after.
void append_pass(const ParallelCorpus::Part& part, uint64_t key, int64_t begin, int64_t end,
                 std::vector<int64_t>& pairs) {
  std::vector<int64_t> pass(part.end - part.begin);
  std::iota(pass.begin(), pass.end(), part.begin);
  if (end - begin < std::ssize(pass)) shuffle(pass, RandomGenerator(key, kPassStream));
  pairs.insert(pairs.end(), pass.begin() + begin, pass.begin() + end);
}

int64_t pairs_of_windows(const ParallelCorpus& corpus, const BatchOptions& options) {
  const double tokens =
      static_cast<double>(std::max(corpus.source_tokens(), corpus.target_tokens()));
  const double a_pair = tokens / static_cast<double>(corpus.pairs()) + 1;
  const double a_window =
      static_cast<double>(options.window_batches) * static_cast<double>(options.batch_tokens);
  constexpr double kMost = 1e15;
  return static_cast<int64_t>(std::clamp(std::ceil(a_window / a_pair), 1.0, kMost));
}

[[noreturn]] void fail_position(const DataPosition& position) {
  fail(
      "there is no batch at epoch {}, window {}, batch {} of the training data: the data or the "
      "options of batching are not those of the run that is resumed",
      position.epoch, position.window, position.batch);
}

}  // namespace

void BatchOptions::validate() const {
  constexpr int64_t kMost = 1'000'000'000;
  const std::pair<const char*, int64_t> fields[] = {{"batch_tokens", batch_tokens},
                                                    {"lanes", lanes},
                                                    {"lane_tokens", lane_tokens},
                                                    {"window_batches", window_batches}};
  for (const auto& [name, value] : fields) {
    if (value < 1 || value > kMost) fail_usage("{} is {}; expected 1 to {}", name, value, kMost);
  }
}

std::vector<std::span<const int64_t>> cut_by_tokens(const ParallelCorpus& corpus,
                                                    std::span<const int64_t> pairs,
                                                    int64_t batch_tokens) {
  std::vector<std::span<const int64_t>> cuts;
  std::size_t begin = 0;
  int64_t source = 0, target = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const int64_t more_source = corpus.source_length(pairs[i]) + 1;
    const int64_t more_target = corpus.target_length(pairs[i]) + 1;
    if (i > begin && std::max(source + more_source, target + more_target) > batch_tokens) {
      cuts.push_back(pairs.subspan(begin, i - begin));
      begin = i;
      source = target = 0;
    }
    source += more_source;
    target += more_target;
  }
  if (begin < pairs.size()) cuts.push_back(pairs.subspan(begin));
  return cuts;
}

Batch make_batch(const ParallelCorpus& corpus, std::span<const int64_t> pairs,
                 const BatchOptions& options) {
  Batch batch;
  batch.lanes = make_lanes(corpus, pairs, options.lanes, options.lane_tokens);
  batch.pairs = std::ssize(pairs);
  for (const Lane& lane : batch.lanes) {
    batch.source_tokens += std::ssize(lane.source.tokens);
    batch.target_tokens += std::ssize(lane.target_output);
  }
  return batch;
}

std::vector<Batch> validation_batches(const ParallelCorpus& corpus, const BatchOptions& options) {
  options.validate();
  std::vector<int64_t> pairs(corpus.pairs());
  std::iota(pairs.begin(), pairs.end(), 0);
  std::vector<Batch> batches;
  for (const auto& cut : cut_by_tokens(corpus, pairs, options.batch_tokens)) {
    batches.push_back(make_batch(corpus, cut, options));
    batches.back().position.batch = std::ssize(batches) - 1;
  }
  batches.back().last_of_epoch = true;
  return batches;
}

int64_t count_pairs(const ParallelCorpus& corpus, int64_t epoch) {
  int64_t count = 0;
  for (const ParallelCorpus::Part& part : corpus.parts()) {
    const Draws draws = draws_of(part, epoch);
    count += draws.end - draws.begin;
  }
  return count;
}

std::vector<int64_t> shuffled_epoch(const ParallelCorpus& corpus, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> pairs;
  pairs.reserve(count_pairs(corpus, epoch));
  for (std::size_t i = 0; i < corpus.parts().size(); ++i) {
    const ParallelCorpus::Part& part = corpus.parts()[i];
    const int64_t size = part.end - part.begin;
    const Draws draws = draws_of(part, epoch);
    for (int64_t place = draws.begin; place < draws.end;) {
      const int64_t pass = place / size;
      const int64_t end = std::min(draws.end, (pass + 1) * size);
      append_pass(part, mix_seed(mix_seed(seed, i), pass), place - pass * size, end - pass * size,
                  pairs);
      place = end;
    }
  }
  shuffle(pairs, RandomGenerator(mix_seed(seed, epoch), kEpochStream));
  return pairs;
}

BatchPlan::BatchPlan(const ParallelCorpus& corpus, const BatchOptions& options,
                     DataPosition position)
    : corpus_(corpus), options_(options), position_(position) {
  options.validate();
  window_pairs_ = pairs_of_windows(corpus, options);
  if (position.epoch < 0 || position.window < 0 || position.batch < 0) fail_position(position);
  open_epoch();
  if (position_.epoch != position.epoch) return;  // an epoch without pairs: the next one
  if (position.window >= windows()) fail_position(position);
  if (position.batch >= std::ssize(batches_)) fail_position(position);
}

Batch BatchPlan::next() {
  Batch batch = make_batch(corpus_, batches_[position_.batch], options_);
  batch.position = position_;
  advance();
  batch.last_of_epoch = position_.epoch != batch.position.epoch;
  return batch;
}

int64_t BatchPlan::windows() const {
  return (std::ssize(epoch_) + window_pairs_ - 1) / window_pairs_;
}

/// Goes to the next epoch that has pairs: with small weights some have none.
void BatchPlan::open_epoch() {
  while (count_pairs(corpus_, position_.epoch) == 0) {
    position_ = {.epoch = position_.epoch + 1, .window = 0, .batch = 0};
  }
  epoch_ = shuffled_epoch(corpus_, options_.seed, position_.epoch);
  if (position_.window < windows()) open_window();
}

void BatchPlan::open_window() {
  const int64_t begin = position_.window * window_pairs_;
  const int64_t end = std::min(begin + window_pairs_, std::ssize(epoch_));
  window_.assign(epoch_.begin() + begin, epoch_.begin() + end);
  std::stable_sort(window_.begin(), window_.end(), [&](int64_t a, int64_t b) {
    return std::tuple(corpus_.target_length(a), corpus_.source_length(a)) <
           std::tuple(corpus_.target_length(b), corpus_.source_length(b));
  });
  batches_ = cut_by_tokens(corpus_, window_, options_.batch_tokens);
  const uint64_t key = mix_seed(mix_seed(options_.seed, position_.epoch), position_.window);
  shuffle(batches_, RandomGenerator(key, kBatchStream));
}

void BatchPlan::advance() {
  if (++position_.batch < std::ssize(batches_)) return;
  position_.batch = 0;
  if (++position_.window < windows()) return open_window();
  position_ = {.epoch = position_.epoch + 1, .window = 0, .batch = 0};
  open_epoch();
}

}  // namespace attend
