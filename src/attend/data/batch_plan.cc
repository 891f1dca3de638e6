#include "attend/data/batch_plan.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/random.h"

namespace attend {
namespace {

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

std::vector<std::span<const StoredPair>> cut_by_tokens(std::span<const StoredPair> pairs,
                                                       int64_t batch_tokens) {
  std::vector<std::span<const StoredPair>> cuts;
  std::size_t begin = 0;
  int64_t source = 0, target = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const int64_t more_source = pairs[i].source_length + 1;
    const int64_t more_target = pairs[i].target_length + 1;
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

std::vector<std::span<const StoredPair>> cut_alike(std::span<const StoredPair> pairs,
                                                   int64_t batch_tokens) {
  const std::size_t fewest = cut_by_tokens(pairs, batch_tokens).size();
  int64_t too_few = 0, enough = batch_tokens;
  while (enough - too_few > 1) {
    const int64_t tried = too_few + (enough - too_few) / 2;
    (cut_by_tokens(pairs, tried).size() > fewest ? too_few : enough) = tried;
  }
  return cut_by_tokens(pairs, enough);
}

Batch make_batch(const ParallelCorpus& corpus, std::span<const StoredPair> pairs,
                 const BatchOptions& options, const ReadPair& read) {
  Batch batch;
  batch.lanes = make_lanes(corpus, pairs, options.lanes, options.lane_tokens, read);
  batch.pairs = std::ssize(pairs);
  for (const Lane& lane : batch.lanes) {
    batch.source_tokens += std::ssize(lane.source.tokens);
    batch.target_tokens += std::ssize(lane.target_output);
  }
  return batch;
}

std::vector<Batch> validation_batches(const ParallelCorpus& corpus, const BatchOptions& options) {
  options.validate();
  const std::vector<StoredPair> pairs = corpus.store().pairs(0, corpus.pairs());
  std::vector<Batch> batches;
  for (const auto& cut : cut_by_tokens(pairs, options.batch_tokens)) {
    batches.push_back(make_batch(corpus, cut, options));
    batches.back().position.batch = std::ssize(batches) - 1;
  }
  batches.back().last_of_epoch = true;
  return batches;
}

BatchPlan::BatchPlan(const ParallelCorpus& corpus, const BatchOptions& options,
                     DataPosition position, PairDropout dropout)
    : corpus_(corpus), options_(options), dropout_(std::move(dropout)), position_(position) {
  options.validate();
  if (dropout_) {
    read_ = [this](const StoredPair& pair, std::vector<int32_t>& source,
                   std::vector<int32_t>& target) {
      const auto begin = tokens_.begin() + pair.offset;
      const auto middle = begin + pair.source_length;
      source.insert(source.end(), begin, middle);
      target.insert(target.end(), middle, middle + pair.target_length);
    };
  }
  window_pairs_ = pairs_of_windows(corpus, options);
  if (position.epoch < 0 || position.window < 0 || position.batch < 0) fail_position(position);
  open_epoch();
  if (position_.epoch != position.epoch) return;  // an epoch without pairs: the next one
  if (position.window >= windows()) fail_position(position);
  if (position.batch >= std::ssize(batches_)) fail_position(position);
}

Batch BatchPlan::next() {
  Batch batch = make_batch(corpus_, batches_[position_.batch], options_, read_);
  batch.position = position_;
  advance();
  batch.last_of_epoch = position_.epoch != batch.position.epoch;
  return batch;
}

int64_t BatchPlan::windows() const { return (order_->size() + window_pairs_ - 1) / window_pairs_; }

/// Goes to the next epoch that has pairs: with small weights some have none.
void BatchPlan::open_epoch() {
  while (count_pairs(corpus_.parts(), position_.epoch) == 0) {
    position_ = {.epoch = position_.epoch + 1, .window = 0, .batch = 0};
  }
  order_.emplace(corpus_.parts(), options_.seed, position_.epoch);
  if (position_.window >= windows()) return;
  expect_window(position_.window);
  open_window();
}

std::pair<int64_t, int64_t> BatchPlan::bounds_of(int64_t window) const {
  const int64_t begin = window * window_pairs_;
  return {begin, std::min(begin + window_pairs_, order_->size())};
}

/// A disk may need a while for so many places; it has until the window is opened.
void BatchPlan::expect_window(int64_t window) const {
  const auto [begin, end] = bounds_of(window);
  for (int64_t position = begin; position < end; ++position) {
    corpus_.store().expect((*order_)[position]);
  }
}

void BatchPlan::open_window() {
  const auto [begin, end] = bounds_of(position_.window);
  window_.clear();
  for (int64_t position = begin; position < end; ++position) {
    window_.push_back(corpus_.store().pair((*order_)[position]));
  }
  for (const StoredPair& pair : window_) corpus_.store().expect(pair);
  if (position_.window + 1 < windows()) expect_window(position_.window + 1);
  if (dropout_) segment_window();
  batches_ = cut_alike(window_, options_.batch_tokens);
}

void BatchPlan::segment_window() {
  tokens_.clear();
  std::vector<int32_t> source, target;
  int64_t place = bounds_of(position_.window).first;
  for (StoredPair& pair : window_) {
    source.clear();
    target.clear();
    corpus_.store().read(pair, source, target);
    dropout_(mix_seed(mix_seed(options_.seed, position_.epoch), place++), source, target);
    pair = {pair.pair, std::ssize(tokens_), static_cast<int32_t>(source.size()),
            static_cast<int32_t>(target.size())};
    tokens_.insert(tokens_.end(), source.begin(), source.end());
    tokens_.insert(tokens_.end(), target.begin(), target.end());
  }
}

void BatchPlan::advance() {
  if (++position_.batch < std::ssize(batches_)) return;
  position_.batch = 0;
  if (++position_.window < windows()) return open_window();
  position_ = {.epoch = position_.epoch + 1, .window = 0, .batch = 0};
  open_epoch();
}

}  // namespace attend
