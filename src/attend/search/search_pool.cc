#include "attend/search/search_pool.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/profile.h"
#include "attend/kernels/log_probs.h"
#include "attend/search/beam_search.h"
#include "attend/search/shortlist.h"

namespace attend {
namespace {

constexpr int64_t kRefillPart = 4;  // sentences enter when such a part of the budget is free
// Hypotheses that are worth two turns; for fewer, reading the weights once more costs more.
constexpr std::size_t kTwoTurnsFrom = 32;

TokenBatch source_batch(std::span<const std::unique_ptr<ActiveSentence>> sentences, int32_t eos) {
  TokenBatch batch;
  auto offsets = std::make_shared<std::vector<int64_t>>(1, 0);
  for (const auto& each : sentences) {
    const std::vector<int32_t>& source = each->sentence.request.source;
    batch.tokens.insert(batch.tokens.end(), source.begin(), source.end());
    batch.tokens.push_back(eos);
    offsets->push_back(std::ssize(batch.tokens));
  }
  batch.offsets = std::move(offsets);
  return batch;
}

}  // namespace

SearchPool::SearchPool(std::span<const Transformer* const> models, MemoryPool& memory,
                       const SearchTokens& tokens, const SearchOptions& options)
    : tokens_(tokens),
      options_(with_batch_tokens(options, models.front()->config())),
      models_(make_pool_models(models, memory)),
      caches_(models_),
      scorer_(models_, tokens.eos, options.needs_log_probs()),
      row_offsets_(std::make_shared<std::vector<int64_t>>()),
      positions_(std::make_shared<std::vector<int32_t>>()),
      hidden_(models.size()) {
  step_.input.offsets = row_offsets_;
  step_.positions = positions_;
}

int64_t SearchPool::room() const {
  const int64_t budget = search_budget(options_), free = budget - cost_;
  return kRefillPart * free >= budget ? free : 0;
}

void SearchPool::release() { caches_.reset(); }

// ------------------------------------------------------------------------------ entering

void SearchPool::add(std::vector<SearchSentence> sentences) {
  try {
    admit(sentences);
  } catch (...) {
    fail_all(std::current_exception());
    for (SearchSentence& each : sentences) {
      if (each.done) each.done({}, std::current_exception());
    }
  }
}

void SearchPool::admit(std::vector<SearchSentence>& sentences) {
  const std::size_t before = active_.size();
  // The last token of the longest output is an input at position max_length - 1.
  int64_t longest = models_.front().model->config().max_length - 1;
  for (const PoolModel& each : models_) {
    longest = std::min(longest, each.model->config().max_length - 1);
  }
  active_.reserve(before + sentences.size());
  for (SearchSentence& each : sentences) {
    const int64_t cost = search_cost(each.request, options_);
    auto beam = std::make_unique<ActiveSentence>(Beam(each.request, longest, tokens_, options_));
    beam->cost = cost;
    if (tokens_.shortlist) beam->listed = tokens_.shortlist->tokens_for(each.request, tokens_.eos);
    // What is left has no one to tell, should the rest of this fail.
    beam->sentence = {std::move(each.request), std::exchange(each.done, nullptr)};
    active_.push_back(std::move(beam));
    cost_ += cost;
  }
  const std::vector<int32_t> first = take_ranges(before);
  const TokenBatch batch = source_batch(std::span(active_).subspan(before), tokens_.source_eos);
  for (PoolModel& each : models_) {
    const EncoderOutput memory = each.model->encode(each.context, batch);
    each.model->write_memory(each.context, memory, first, each.caches);
  }
}

std::vector<int32_t> SearchPool::take_ranges(std::size_t before) {
  std::vector<MemoryRange*> held;
  held.reserve(active_.size());
  for (std::size_t i = 0; i < active_.size(); ++i) {
    ActiveSentence& each = *active_[i];
    if (i >= before) {
      each.range = caches_.take_range(std::ssize(each.sentence.request.source) + 1, held);
    }
    held.push_back(&each.range);
  }
  std::vector<int32_t> first;
  for (std::size_t i = before; i < active_.size(); ++i) first.push_back(active_[i]->range.first);
  return first;
}

// ------------------------------------------------------------------------------ a step

void SearchPool::step() {
  if (empty()) return;
  try {
    fill_step();
    run_models();
    const ProfileScope scope("beams");
    advance();
    remove_done();
  } catch (...) {
    fail_all(std::current_exception());
  }
}

/// A row for each hypothesis whose turn it is. Gives each its new slot.
void SearchPool::fill_step() {
  const ProfileScope scope("beams");
  std::size_t all = 0, rows = 0, slots = 0;
  for (const auto& each : active_) all += each->beam.active().size();
  for (const auto& each : active_) {
    const std::size_t turn = each->beam.next_turn(all >= kTwoTurnsFrom).size();
    rows += turn;
    slots += turn * static_cast<std::size_t>(each->beam.length() + 1);
  }
  caches_.reserve_slots(static_cast<int64_t>(rows), [this](FreeSlots& book) {
    for (const auto& each : active_) {
      for (const ActiveHypothesis& hypothesis : each->beam.active()) book.keep(hypothesis.slots);
    }
  });
  step_.resize(rows, slots);
  const std::size_t before = row_offsets_->size();
  row_offsets_->resize(rows + 1);
  for (std::size_t i = before; i <= rows; ++i) (*row_offsets_)[i] = static_cast<int64_t>(i);
  positions_->resize(rows);

  std::size_t row = 0;
  int64_t end = 0;
  for (const auto& each : active_) {
    const int64_t position = each->beam.length();
    for (ActiveHypothesis& hypothesis : each->beam.turn()) {
      const int32_t slot = caches_.take_slot();
      hypothesis.slots.push_back(slot);
      step_.slots[row] = slot;
      step_.input.ids[row] = hypothesis.token;
      step_.input.first_positions[row] = position;
      (*positions_)[row] = static_cast<int32_t>(position);
      std::copy(hypothesis.slots.begin(), hypothesis.slots.end(),
                step_.self_view.slots.begin() + end);
      end += std::ssize(hypothesis.slots);
      step_.memory_view.first[row] = each->range.first;
      step_.memory_view.count[row] = each->range.count;
      step_.self_view.offsets[++row] = end;
    }
  }
}

void SearchPool::run_models() {
  const bool with_attention = active_.front()->beam.needs_attention();
  attention_.clear();
  for (std::size_t i = 0; i < models_.size(); ++i) {
    PoolModel& each = models_[i];
    const std::span<float> attention = with_attention ? attention_buffer(i) : std::span<float>();
    hidden_[i] = each.model->decode_step(each.context, step_, each.caches, attention).value();
  }
  if (attention_.size() > 1) mean_of(attention_);
}

std::span<float> SearchPool::attention_buffer(std::size_t model) {
  const std::vector<int64_t>& counts = step_.memory_view.count;
  attention_offsets_.assign(1, 0);
  for (const int64_t count : counts)
    attention_offsets_.push_back(attention_offsets_.back() + count);
  const int64_t total = attention_offsets_.back();
  attention_.push_back(models_[model].context.tensor({1, total}, DType::kFloat32));
  return {attention_.back().data<float>(), static_cast<std::size_t>(total)};
}

void SearchPool::advance() {
  const bool makes_logits = models_.size() > 1 || !models_.front().model->projects_in_tiles();
  int64_t row = 0;
  for (std::size_t first = 0; first < active_.size();) {
    std::size_t end = first;
    int64_t rows = 0;
    // Whole sentences whose logits exist at once, where there are any; with a shortlist, one: it
    // has a list of its own.
    const bool all = active_[first]->beam.needs_all_scores();
    const int64_t most =
        all || makes_logits ? kLogitsTileRows : std::numeric_limits<int64_t>::max();
    do {
      rows += std::ssize(active_[end++]->beam.turn());
    } while (end < active_.size() && !tokens_.shortlist &&
             active_[end]->beam.needs_all_scores() == all &&
             rows + std::ssize(active_[end]->beam.turn()) <= most);
    advance_tile(first, end, row, row + rows);
    row += rows;
    first = end;
  }
}

void SearchPool::advance_tile(std::size_t first, std::size_t end, int64_t first_row,
                              int64_t end_row) {
  tile_.clear();
  for (const Tensor& each : hidden_) tile_.push_back(each.slice_rows(first_row, end_row));
  const std::span<StepScores> scores =
      active_[first]->beam.needs_all_scores()
          ? scorer_.all(tile_, active_[first]->listed)
          : scorer_.best(tile_, tile_width(first, end), active_[first]->listed);
  for (std::size_t i = 0; !attention_.empty() && i < scores.size(); ++i) {
    const std::size_t row = static_cast<std::size_t>(first_row) + i;
    scores[i].attention = {attention_.front().data<float>() + attention_offsets_[row],
                           static_cast<std::size_t>(step_.memory_view.count[row])};
  }
  std::span<const StepScores> rows = scores;
  for (std::size_t i = first; i < end; ++i) {
    ActiveSentence& each = *active_[i];
    const std::span<const StepScores> mine = rows.first(each.beam.turn().size());
    rows = rows.subspan(mine.size());
    try {
      each.beam.advance(mine);
    } catch (const Error&) {
      each.error = std::current_exception();
    }
  }
}

int64_t SearchPool::tile_width(std::size_t first, std::size_t end) const {
  int64_t width = 1;
  for (std::size_t i = first; i < end; ++i) width = std::max(width, active_[i]->beam.width());
  return width;
}

// ------------------------------------------------------------------------------ leaving

void SearchPool::remove_done() {
  const auto leaves = [&](const std::unique_ptr<ActiveSentence>& each) {
    if (!each->error && !each->beam.done()) return false;
    caches_.give_back(each->range);
    cost_ -= each->cost;
    each->sentence.done(each->error ? std::vector<Hypothesis>() : each->beam.take_best(),
                        each->error);
    return true;
  };
  active_.erase(std::remove_if(active_.begin(), active_.end(), leaves), active_.end());
}

void SearchPool::fail_all(const std::exception_ptr& error) {
  for (const auto& each : active_) each->sentence.done({}, error);
  active_.clear();
  cost_ = 0;
  caches_.reset();
}

}  // namespace attend
