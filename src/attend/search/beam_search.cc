#include "attend/search/beam_search.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/profile.h"
#include "attend/kernels/softmax.h"
#include "attend/search/beam.h"
#include "attend/search/beam_caches.h"

namespace attend {
namespace {

constexpr int64_t kBudgetBeam = 4;        // the beam size that batch_tokens is meant for
constexpr int64_t kLeastCost = 8;         // of a sentence: its output may be longer than its source
constexpr int64_t kLogitsTileRows = 128;  // so that all logits of a step never exist at once
constexpr int64_t kFirstSteps = 16;       // that the caches have room for before they grow

using Requests = std::span<const SearchRequest>;

TokenBatch source_batch(Requests requests, int32_t eos) {
  TokenBatch batch;
  auto offsets = std::make_shared<std::vector<int64_t>>(1, 0);
  for (const SearchRequest& request : requests) {
    batch.tokens.insert(batch.tokens.end(), request.source.begin(), request.source.end());
    batch.tokens.push_back(eos);
    offsets->push_back(std::ssize(batch.tokens));
  }
  batch.offsets = std::move(offsets);
  return batch;
}

/// What a step's rows offer.
struct RowScores {
  int64_t width = 0;  ///< entries a row
  std::vector<int32_t> tokens;
  std::vector<float> log_probs;
  std::vector<float> eos_log_probs;  ///< a row
};

/// Sentences that are searched together: every step runs all their active hypotheses at once, and a
/// sentence that is done leaves.
class GroupSearch {
 public:
  GroupSearch(const Transformer& model, Context& context, Requests requests,
              const SearchTokens& tokens, const SearchOptions& options)
      : model_(model),
        context_(context),
        eos_(tokens.eos),
        hypotheses_(options.hypotheses()),
        memory_(model.encode(context, source_batch(requests, tokens.source_eos))),
        caches_(model, context, memory_, first_slots(requests)) {
    results_.resize(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
      // The last token of the longest output is an input at position max_length - 1.
      beams_.emplace_back(requests[i], model.config().max_length - 1, tokens, options);
      indices_.push_back(i);
    }
  }

  std::vector<std::vector<Hypothesis>> run() {
    while (!beams_.empty()) {
      const RowScores scores = score_next_tokens();
      const ProfileScope scope("beams");
      advance(scores);
      remove_done();
    }
    return std::move(results_);
  }

 private:
  int64_t first_slots(Requests requests) const {
    return std::ssize(requests) * hypotheses_ * kFirstSteps;
  }

  RowScores score_next_tokens() {
    int64_t rows = 0;
    for (const Beam& beam : beams_) rows += std::ssize(beam.active());
    caches_.reserve(rows, beams_);
    std::vector<int32_t> inputs;
    inputs.reserve(static_cast<std::size_t>(rows));
    const DecodingStep step = next_step(inputs);
    caches_.use(rows);
    return best_tokens(model_.decode_step(context_, inputs, step, caches_.layers()).value());
  }

  /// A row for each active hypothesis. Gives each its new slot.
  DecodingStep next_step(std::vector<int32_t>& inputs) {
    const ProfileScope scope("beams");
    DecodingStep step;
    auto positions = std::make_shared<std::vector<int32_t>>();
    step.first_slot = caches_.first_free();
    auto slot = static_cast<int32_t>(step.first_slot);
    for (std::size_t i = 0; i < beams_.size(); ++i) {
      const int64_t first = (*memory_.offsets)[indices_[i]],
                    end = (*memory_.offsets)[indices_[i] + 1];
      for (ActiveHypothesis& hypothesis : beams_[i].active()) {
        inputs.push_back(hypothesis.token);
        positions->push_back(static_cast<int32_t>(beams_[i].length()));
        hypothesis.slots.push_back(slot++);
        append(hypothesis.slots, step.self_view);
        for (int64_t source = first; source < end; ++source) {
          step.memory_view.slots.push_back(static_cast<int32_t>(source));
        }
        step.memory_view.offsets.push_back(std::ssize(step.memory_view.slots));
      }
    }
    step.positions = std::move(positions);
    return step;
  }

  static void append(const std::vector<int32_t>& slots, CacheView& view) {
    view.slots.insert(view.slots.end(), slots.begin(), slots.end());
    view.offsets.push_back(std::ssize(view.slots));
  }

  RowScores best_tokens(const Tensor& hidden) {
    RowScores scores;
    for (const Beam& beam : beams_) scores.width = std::max(scores.width, beam.width());
    scores.width = std::min(scores.width, model_.config().target_vocabulary_size);
    for (int64_t row = 0; row < hidden.rows(); row += kLogitsTileRows) {
      const int64_t end = std::min(row + kLogitsTileRows, hidden.rows());
      const Tensor logits =
          model_.logits(context_, Variable(hidden.slice_rows(row, end), hidden.dtype()));
      const ProfileScope scope("top scores");
      append_scores(logits, scores);
    }
    return scores;
  }

  void append_scores(const Tensor& logits, RowScores& scores) const {
    const TopScores top = top_scores(logits, scores.width);
    scores.tokens.insert(scores.tokens.end(), top.indices.begin(), top.indices.end());
    for (std::size_t i = 0; i < top.scores.size(); ++i) {
      const float log_sum = top.log_sums[i / static_cast<std::size_t>(scores.width)];
      if (!std::isfinite(log_sum)) {
        fail("the model's scores are not numbers; its weights are damaged, or training diverged");
      }
      scores.log_probs.push_back(top.scores[i] - log_sum);
    }
    const std::vector<float> eos = logits.slice_columns(eos_, eos_ + 1).to_vector();
    for (std::size_t i = 0; i < eos.size(); ++i) {
      scores.eos_log_probs.push_back(eos[i] - top.log_sums[i]);
    }
  }

  void advance(const RowScores& scores) {
    const auto width = static_cast<std::size_t>(scores.width);
    std::size_t row = 0;
    std::vector<StepScores> rows;
    for (Beam& beam : beams_) {
      rows.clear();
      for (std::size_t rank = 0; rank < beam.active().size(); ++rank, ++row) {
        rows.push_back({.tokens = std::span(scores.tokens).subspan(row * width, width),
                        .log_probs = std::span(scores.log_probs).subspan(row * width, width),
                        .eos_log_prob = scores.eos_log_probs[row]});
      }
      beam.advance(rows);
    }
  }

  void remove_done() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < beams_.size(); ++i) {
      if (beams_[i].done()) {
        results_[indices_[i]] = beams_[i].take_best();
        continue;
      }
      if (kept != i) {
        beams_[kept] = std::move(beams_[i]);
        indices_[kept] = indices_[i];
      }
      ++kept;
    }
    beams_.erase(beams_.begin() + static_cast<std::ptrdiff_t>(kept), beams_.end());
    indices_.resize(kept);
  }

  const Transformer& model_;
  Context& context_;
  int32_t eos_;
  int64_t hypotheses_;
  EncoderOutput memory_;
  BeamCaches caches_;
  std::vector<Beam> beams_;           ///< of the sentences that are not done
  std::vector<std::size_t> indices_;  ///< of their sources
  std::vector<std::vector<Hypothesis>> results_;
};

void check_sources(const Transformer& model, Requests requests) {
  const int64_t most = model.config().max_length - 1;
  for (const SearchRequest& request : requests) {
    if (std::ssize(request.source) > most) {
      fail("a source of {} tokens; the model takes {} and an end of sentence",
           request.source.size(), most);
    }
  }
}

}  // namespace

int64_t search_cost(int64_t source_tokens, const SearchOptions& options) {
  return std::max(source_tokens + 1, kLeastCost) * options.hypotheses();
}

int64_t search_budget(const SearchOptions& options) { return options.batch_tokens * kBudgetBeam; }

int64_t search_memory(const TransformerConfig& config, DType compute,
                      const SearchOptions& options) {
  const int64_t size = size_of(compute);
  // Sources of kLeastCost tokens make the most hypotheses; one that is longer than the budget is
  // searched by itself.
  const int64_t longest = config.max_length;
  const int64_t cost = std::max(search_budget(options), longest * options.hypotheses());
  const int64_t rows = std::max(cost / kLeastCost, options.hypotheses());
  const int64_t slots = cost + rows * std::min(options.max_extra_length, longest);
  const int64_t sources = std::max(cost / options.hypotheses(), longest);

  const int64_t key_value = config.heads * (config.key_width() + config.value_width());
  // Caches double, and while they do both are there.
  constexpr int64_t kGrowing = 3;
  const int64_t caches = config.decoder_layers * key_value * size * (kGrowing * slots + sources);
  const int64_t activations = 4 * (6 * config.d_model + 2 * config.d_ff + 2 * key_value);
  const int64_t logits =
      std::min(rows, kLogitsTileRows) * config.target_vocabulary_size * int64_t{sizeof(float)};
  return caches + std::max(sources, rows) * activations + 2 * logits;
}

std::vector<std::vector<Hypothesis>> beam_search(const Transformer& model, Context& context,
                                                 const std::vector<SearchRequest>& requests,
                                                 const SearchTokens& tokens,
                                                 const SearchOptions& options) {
  options.validate();
  check_sources(model, requests);
  std::vector<std::vector<Hypothesis>> results;
  results.reserve(requests.size());
  for (std::size_t first = 0; first < requests.size();) {
    std::size_t end = first;
    int64_t cost = 0;
    do {
      cost += search_cost(std::ssize(requests[end++].source), options);
    } while (end < requests.size() &&
             cost + search_cost(std::ssize(requests[end].source), options) <=
                 search_budget(options));
    GroupSearch group(model, context, Requests(requests).subspan(first, end - first), tokens,
                      options);
    for (std::vector<Hypothesis>& best : group.run()) results.push_back(std::move(best));
    first = end;
  }
  return results;
}

}  // namespace attend
