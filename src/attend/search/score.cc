#include "attend/search/score.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "attend/base/error.h"
#include "attend/base/profile.h"
#include "attend/kernels/attention.h"
#include "attend/kernels/softmax.h"

namespace attend {
namespace {

constexpr int64_t kLogitsTileRows = 128;  // so that all logits of a batch never exist at once

/// The sequences of a batch, being put together.
struct SequenceBuilder {
  std::vector<int32_t> tokens;
  std::vector<int64_t> offsets{0};

  void add(const std::vector<int32_t>& sequence) {
    tokens.insert(tokens.end(), sequence.begin(), sequence.end());
  }
  void end_sequence() { offsets.push_back(std::ssize(tokens)); }
  TokenBatch batch() && {
    return {std::move(tokens), std::make_shared<const std::vector<int64_t>>(std::move(offsets))};
  }
};

void check_lengths(const Transformer& model, std::span<const TokenPair> pairs) {
  const int64_t most = model.config().max_length - 1;
  for (const TokenPair& pair : pairs) {
    if (std::ssize(pair.source) <= most && std::ssize(pair.target) <= most) continue;
    fail("a pair of {} and {} tokens; the model takes {} and an end of sentence",
         pair.source.size(), pair.target.size(), most);
  }
}

/// log P of one token a row.
void append_log_probs(const Tensor& logits, std::span<const int32_t> targets,
                      std::vector<float>& log_probs) {
  for (int64_t row = 0; row < logits.rows(); ++row) {
    const auto target = targets.subspan(static_cast<std::size_t>(row), 1);
    const double nll = cross_entropy(logits.slice_rows(row, row + 1), target, 0, 1, {}).nll;
    if (!std::isfinite(nll)) {
      fail("the model's scores are not numbers; its weights are damaged, or training diverged");
    }
    log_probs.push_back(static_cast<float>(-nll));
  }
}

void add_log_probs(const Transformer& model, Context& context, const Tensor& hidden,
                   std::span<const int32_t> targets, std::vector<PairScores>& results) {
  std::vector<float> log_probs;
  log_probs.reserve(targets.size());
  for (int64_t row = 0; row < hidden.rows(); row += kLogitsTileRows) {
    const int64_t end = std::min(row + kLogitsTileRows, hidden.rows());
    const Tensor logits =
        model.logits(context, Variable(hidden.slice_rows(row, end), hidden.dtype()));
    const ProfileScope scope("token scores");
    const auto first = static_cast<std::size_t>(row), count = static_cast<std::size_t>(end - row);
    append_log_probs(logits, targets.subspan(first, count), log_probs);
  }
  auto next = log_probs.begin();
  for (PairScores& result : results) {
    const auto end = next + std::ssize(result.log_probs);
    std::copy(next, end, result.log_probs.begin());
    next = end;
  }
}

/// weights: [heads, target tokens, source tokens] of each pair; with `heads` 1, a mean over them.
void add_attention(const Tensor& weights, std::size_t heads, std::span<const TokenPair> pairs,
                   std::vector<PairScores>& results) {
  const float* next = weights.data<float>();
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    for (std::size_t row = 0; row < heads * (pairs[i].target.size() + 1); ++row) {
      const float* end = next + pairs[i].source.size() + 1;
      results[i].attention.emplace_back(next, end);
      next = end;
    }
  }
}

}  // namespace

int64_t score_cost(const TokenPair& pair) {
  return std::ssize(pair.source) + std::ssize(pair.target) + 2;
}

std::vector<PairScores> score_pairs(const Transformer& model, Context& context,
                                    std::span<const TokenPair> pairs, const SearchTokens& tokens,
                                    const ForcedPass& pass) {
  check_lengths(model, pairs);
  SequenceBuilder sources, inputs;
  std::vector<int32_t> targets;
  std::vector<PairScores> results;
  for (const TokenPair& pair : pairs) {
    sources.add(pair.source);
    sources.add({tokens.source_eos});
    sources.end_sequence();
    inputs.add({tokens.bos});
    inputs.add(pair.target);
    inputs.end_sequence();
    targets.insert(targets.end(), pair.target.begin(), pair.target.end());
    targets.push_back(tokens.eos);
    results.push_back({.log_probs = std::vector<float>(pass.log_probs ? pair.target.size() + 1 : 0),
                       .attention = {}});
  }
  const EncoderOutput memory = model.encode(context, std::move(sources).batch());
  const TokenBatch input = std::move(inputs).batch();
  AttentionProbe probe{.layer = pass.attention_layer, .weights = {}};
  const Tensor hidden = model.decode(context, input, memory, &probe).value();
  if (pass.log_probs) add_log_probs(model, context, hidden, targets, results);
  if (pass.attention_layer < 0) return results;
  const int64_t heads = model.config().heads;
  if (pass.each_head) {
    add_attention(probe.weights, static_cast<std::size_t>(heads), pairs, results);
  } else {
    const Tensor mean = context.tensor({probe.weights.count() / heads}, DType::kFloat32);
    mean_over_heads({.heads = heads,
                     .query_offsets = *input.offsets,
                     .key_offsets = *memory.offsets,
                     .dropout = {}},
                    probe.weights, mean);
    add_attention(mean, 1, pairs, results);
  }
  return results;
}

}  // namespace attend
