#include "attend/search/beam_search.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/profile.h"
#include "attend/kernels/top_scores.h"
#include "attend/search/beam.h"
#include "attend/search/beam_caches.h"

namespace attend {
namespace {

constexpr int64_t kBudgetBeam = 4;        // the beam size that batch_tokens is meant for
constexpr int64_t kLeastCost = 8;         // of a sentence: its output may be longer than its source
constexpr int64_t kLogitsTileRows = 128;  // so that all logits of a step never exist at once
constexpr int64_t kFirstSteps = 16;       // that the caches have room for before they grow

using Sources = std::span<const std::vector<int32_t>>;

TokenBatch source_batch(Sources sources, int32_t eos) {
  TokenBatch batch;
  auto offsets = std::make_shared<std::vector<int64_t>>(1, 0);
  for (const std::vector<int32_t>& source : sources) {
    batch.tokens.insert(batch.tokens.end(), source.begin(), source.end());
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
  std::vector<float> eos_log_probs;  ///< a row; empty where no hypothesis must end
};

/// Sentences that are searched together: every step runs all their active hypotheses at once, and a
/// sentence that is done leaves.
class GroupSearch {
 public:
  GroupSearch(const Transformer& model, Context& context, Sources sources,
              const SearchTokens& tokens, const SearchOptions& options)
      : model_(model),
        context_(context),
        tokens_(tokens),
        beam_size_(options.beam_size),
        memory_(model.encode(context, source_batch(sources, tokens.source_eos))),
        caches_(model, context, memory_, first_slots(sources)) {
    results_.resize(sources.size());
    for (std::size_t i = 0; i < sources.size(); ++i) {
      // The last token of the longest output is an input at position max_length - 1.
      const int64_t longest = std::min(std::ssize(sources[i]) + options.max_extra_length,
                                       model.config().max_length - 1);
      beams_.emplace_back(longest, tokens, options);
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
  int64_t first_slots(Sources sources) const {
    return std::ssize(sources) * beam_size_ * kFirstSteps;
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
        inputs.push_back(hypothesis.tokens.back());
        positions->push_back(static_cast<int32_t>(hypothesis.tokens.size()) - 1);
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
    const bool need_eos =
        std::any_of(beams_.begin(), beams_.end(), [](const Beam& beam) { return beam.must_end(); });
    RowScores scores;
    // bos and what is suppressed may take places.
    scores.width = std::min(2 * beam_size_ + 1 + std::ssize(tokens_.suppressed),
                            model_.config().target_vocabulary_size);
    for (int64_t row = 0; row < hidden.rows(); row += kLogitsTileRows) {
      const int64_t end = std::min(row + kLogitsTileRows, hidden.rows());
      const Tensor logits =
          model_.logits(context_, Variable(hidden.slice_rows(row, end), hidden.dtype()));
      const ProfileScope scope("top scores");
      append_scores(logits, need_eos, scores);
    }
    return scores;
  }

  void append_scores(const Tensor& logits, bool need_eos, RowScores& scores) const {
    const TopScores top = top_scores(logits, scores.width);
    scores.tokens.insert(scores.tokens.end(), top.indices.begin(), top.indices.end());
    for (std::size_t i = 0; i < top.scores.size(); ++i) {
      const float log_sum = top.log_sums[i / static_cast<std::size_t>(scores.width)];
      if (!std::isfinite(log_sum)) {
        fail("the model's scores are not numbers; its weights are damaged, or training diverged");
      }
      scores.log_probs.push_back(top.scores[i] - log_sum);
    }
    if (!need_eos) return;
    const std::vector<float> eos = logits.slice_columns(tokens_.eos, tokens_.eos + 1).to_vector();
    for (std::size_t i = 0; i < eos.size(); ++i) {
      scores.eos_log_probs.push_back(eos[i] - top.log_sums[i]);
    }
  }

  void advance(const RowScores& scores) {
    std::size_t row = 0;
    std::vector<Candidate> candidates;
    for (Beam& beam : beams_) {
      candidates.clear();
      for (std::size_t rank = 0; rank < beam.active().size(); ++rank, ++row) {
        const double log_prob = beam.active()[rank].log_prob;
        const auto parent = static_cast<int32_t>(rank);
        if (beam.must_end()) {
          const auto eos = static_cast<double>(scores.eos_log_probs[row]);
          candidates.push_back({log_prob + eos, parent, tokens_.eos});
        } else {
          offer(scores, row, log_prob, parent, candidates);
        }
      }
      beam.advance(candidates);
    }
  }

  void offer(const RowScores& scores, std::size_t row, double log_prob, int32_t parent,
             std::vector<Candidate>& candidates) const {
    const auto width = static_cast<std::size_t>(scores.width);
    for (std::size_t i = row * width; i < (row + 1) * width; ++i) {
      const int32_t token = scores.tokens[i];
      if (token == tokens_.bos || contains(tokens_.suppressed, token)) continue;
      candidates.push_back({log_prob + static_cast<double>(scores.log_probs[i]), parent, token});
    }
  }

  static bool contains(const std::vector<int32_t>& tokens, int32_t token) {
    return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
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
  const SearchTokens& tokens_;
  int64_t beam_size_;
  EncoderOutput memory_;
  BeamCaches caches_;
  std::vector<Beam> beams_;           ///< of the sentences that are not done
  std::vector<std::size_t> indices_;  ///< of their sources
  std::vector<std::vector<Hypothesis>> results_;
};

void check_sources(const Transformer& model, Sources sources) {
  const int64_t most = model.config().max_length - 1;
  for (const std::vector<int32_t>& source : sources) {
    if (std::ssize(source) > most) {
      fail("a source of {} tokens; the model takes {} and an end of sentence", source.size(), most);
    }
  }
}

}  // namespace

int64_t search_cost(int64_t source_tokens, const SearchOptions& options) {
  return std::max(source_tokens + 1, kLeastCost) * options.beam_size;
}

int64_t search_budget(const SearchOptions& options) { return options.batch_tokens * kBudgetBeam; }

int64_t search_memory(const TransformerConfig& config, DType compute,
                      const SearchOptions& options) {
  const int64_t size = size_of(compute);
  // Sources of kLeastCost tokens make the most hypotheses; one that is longer than the budget is
  // searched by itself.
  const int64_t longest = config.max_length;
  const int64_t cost = std::max(search_budget(options), longest * options.beam_size);
  const int64_t rows = std::max(cost / kLeastCost, options.beam_size);
  const int64_t slots = cost + rows * std::min(options.max_extra_length, longest);
  const int64_t sources = std::max(cost / options.beam_size, longest);

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
                                                 const std::vector<std::vector<int32_t>>& sources,
                                                 const SearchTokens& tokens,
                                                 const SearchOptions& options) {
  options.validate();
  check_sources(model, sources);
  std::vector<std::vector<Hypothesis>> results;
  results.reserve(sources.size());
  for (std::size_t first = 0; first < sources.size();) {
    std::size_t end = first;
    int64_t cost = 0;
    do {
      cost += search_cost(std::ssize(sources[end++]), options);
    } while (end < sources.size() &&
             cost + search_cost(std::ssize(sources[end]), options) <= search_budget(options));
    GroupSearch group(model, context, Sources(sources).subspan(first, end - first), tokens,
                      options);
    for (std::vector<Hypothesis>& best : group.run()) results.push_back(std::move(best));
    first = end;
  }
  return results;
}

}  // namespace attend
