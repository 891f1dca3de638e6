#include "attend/search/score.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "attend/base/error.h"
#include "attend/base/profile.h"
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

std::vector<float> all_log_probs(const Transformer& model, Context& context, const Tensor& hidden,
                                 std::span<const int32_t> targets) {
  std::vector<float> log_probs;
  log_probs.reserve(targets.size());
  for (int64_t row = 0; row < hidden.rows(); row += kLogitsTileRows) {
    const int64_t end = std::min(row + kLogitsTileRows, hidden.rows());
    const Tensor logits =
        model.logits(context, Variable(hidden.slice_rows(row, end), hidden.dtype()));
    const ProfileScope scope("token scores");
    append_log_probs(
        logits, targets.subspan(static_cast<std::size_t>(row), static_cast<std::size_t>(end - row)),
        log_probs);
  }
  return log_probs;
}

}  // namespace

int64_t score_cost(const TokenPair& pair) {
  return std::ssize(pair.source) + std::ssize(pair.target) + 2;
}

std::vector<std::vector<float>> score_tokens(const Transformer& model, Context& context,
                                             std::span<const TokenPair> pairs,
                                             const SearchTokens& tokens) {
  check_lengths(model, pairs);
  SequenceBuilder sources, inputs;
  std::vector<int32_t> targets;
  for (const TokenPair& pair : pairs) {
    sources.add(pair.source);
    sources.add({tokens.source_eos});
    sources.end_sequence();
    inputs.add({tokens.bos});
    inputs.add(pair.target);
    inputs.end_sequence();
    targets.insert(targets.end(), pair.target.begin(), pair.target.end());
    targets.push_back(tokens.eos);
  }
  const EncoderOutput memory = model.encode(context, std::move(sources).batch());
  const Tensor hidden = model.decode(context, std::move(inputs).batch(), memory).value();
  const std::vector<float> log_probs = all_log_probs(model, context, hidden, targets);

  std::vector<std::vector<float>> results;
  auto next = log_probs.begin();
  for (const TokenPair& pair : pairs) {
    const auto end = next + std::ssize(pair.target) + 1;
    results.emplace_back(next, end);
    next = end;
  }
  return results;
}

}  // namespace attend
