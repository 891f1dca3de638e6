#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "attend/base/random.h"
#include "attend/search/beam.h"

namespace attend {

/// A language of few tokens, whose probabilities depend on all that was put out before. 0 is unk,
/// 1 begin and 2 end of sentence.
class ToyModel {
 public:
  static constexpr int32_t kEos = 2;

  explicit ToyModel(uint64_t seed, int32_t vocabulary = 6, int64_t source_tokens = 3)
      : seed_(seed), vocabulary_(vocabulary), source_tokens_(source_tokens) {}

  int32_t vocabulary() const { return vocabulary_; }
  int64_t source_tokens() const { return source_tokens_; }

  /// log P of each token after `output`.
  std::vector<float> log_probs(const std::vector<int32_t>& output) const {
    return log_softmax(output, 0, vocabulary_, 1.5F);
  }
  float log_prob(const std::vector<int32_t>& output, int32_t token) const {
    return log_probs(output)[static_cast<std::size_t>(token)];
  }
  /// Where the token after `output` attends to; sums to one.
  std::vector<float> attention(const std::vector<int32_t>& output) const {
    std::vector<float> weights = log_softmax(output, 1, source_tokens_, 2.0F);
    for (float& weight : weights) weight = std::exp(weight);
    return weights;
  }

 private:
  std::vector<float> log_softmax(const std::vector<int32_t>& output, uint64_t stream, int64_t count,
                                 float sharpness) const {
    uint64_t key = seed_;
    for (const int32_t token : output) key = mix_seed(key, static_cast<uint64_t>(token));
    RandomGenerator random(key, stream);
    std::vector<float> values(static_cast<std::size_t>(count));
    double sum = 0;
    for (float& value : values) {
      value = sharpness * random.normal();
      sum += std::exp(static_cast<double>(value));
    }
    for (float& value : values) value -= static_cast<float>(std::log(sum));
    return values;
  }

  uint64_t seed_;
  int32_t vocabulary_;
  int64_t source_tokens_;
};

inline const SearchTokens& toy_tokens() {
  static const SearchTokens kTokens{.suppressed = {0}};
  return kTokens;
}

/// How a toy search runs its beam.
struct ToyTurns {
  bool in_two = false;  ///< see Beam::next_turn
  int64_t runs = 0;     ///< comes out: of hypotheses, over all steps
};

/// The search of one sentence with a toy model. Offers what the beam asks for, and so many tokens
/// more.
inline std::vector<Hypothesis> toy_search(const ToyModel& model, const SearchOptions& options,
                                          const SentenceConstraints& constraints = {},
                                          const SearchTokens& tokens = toy_tokens(),
                                          int64_t more_tokens = 0, int64_t longest = 100,
                                          ToyTurns* turns = nullptr) {
  options.validate();
  const SearchRequest request{
      .source = std::vector<int32_t>(static_cast<std::size_t>(model.source_tokens()), 3),
      .constraints = constraints};
  Beam beam(request, longest, tokens, options);
  std::vector<std::vector<int32_t>> outputs(1);
  while (!beam.done()) {
    std::vector<std::vector<float>> all, log_probs, attention;
    std::vector<std::vector<int32_t>> ranked;
    const auto turn = beam.next_turn(turns != nullptr && turns->in_two);
    const auto first = static_cast<std::size_t>(&turn.front() - &beam.active().front());
    if (turns != nullptr) turns->runs += std::ssize(turn);
    for (const std::vector<int32_t>& output : std::span(outputs).subspan(first, turn.size())) {
      all.push_back(model.log_probs(output));
      attention.push_back(model.attention(output));
      std::vector<int32_t>& order = ranked.emplace_back(all.back().size());
      std::iota(order.begin(), order.end(), 0);
      const auto log_prob = [&](int32_t token) {
        return all.back()[static_cast<std::size_t>(token)];
      };
      std::ranges::stable_sort(order, std::ranges::greater(), log_prob);
      order.resize(std::min(order.size(), static_cast<std::size_t>(beam.width() + more_tokens)));
      log_probs.emplace_back();
      for (const int32_t token : order) log_probs.back().push_back(log_prob(token));
    }
    std::vector<StepScores> rows(turn.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (beam.needs_all_scores()) {
        rows[i].all = all[i];
      } else {
        rows[i].tokens = ranked[i];
        rows[i].log_probs = log_probs[i];
      }
      rows[i].eos_log_prob = all[i][ToyModel::kEos];
      if (beam.needs_attention()) rows[i].attention = attention[i];
    }
    const int64_t length = beam.length();
    beam.advance(rows);
    if (!beam.done() && beam.length() == length) continue;  // the step's second turn comes
    std::vector<std::vector<int32_t>> next;
    for (const ActiveHypothesis& each : beam.active()) {
      next.push_back(outputs.at(static_cast<std::size_t>(each.parent)));
      next.back().push_back(each.token);
    }
    outputs = std::move(next);
    EXPECT_LE(std::ssize(outputs), options.hypotheses());
  }
  return beam.take_best();
}

/// An output with what a test gives it for a score.
struct Ranked {
  std::vector<int32_t> output;
  double score = 0;
};

/// log P of an output and its end of sentence.
inline double toy_log_prob(const ToyModel& model, const std::vector<int32_t>& output) {
  std::vector<int32_t> before;
  double sum = 0;
  for (const int32_t token : output) {
    sum += static_cast<double>(model.log_prob(before, token));
    before.push_back(token);
  }
  return sum + static_cast<double>(model.log_prob(before, ToyModel::kEos));
}

using ScoreOf = std::function<double(const std::vector<int32_t>& output)>;
using Allowed = std::function<bool(const std::vector<int32_t>& output)>;

/// Brute force: every output of up to `longest` words that is allowed, best first.
inline std::vector<Ranked> brute_force(const ToyModel& model, std::size_t longest,
                                       const ScoreOf& score, const Allowed& allowed) {
  std::vector<Ranked> found;
  std::vector<std::vector<int32_t>> outputs(1);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::vector<int32_t> output = outputs[i];
    if (allowed(output)) found.push_back({output, score(output)});
    for (int32_t word = 3; word < model.vocabulary() && output.size() < longest; ++word) {
      outputs.push_back(output);
      outputs.back().push_back(word);
    }
  }
  std::ranges::stable_sort(found, std::ranges::greater(), &Ranked::score);
  return found;
}

inline bool has_phrase(const std::vector<int32_t>& output, const std::vector<int32_t>& phrase) {
  return std::search(output.begin(), output.end(), phrase.begin(), phrase.end()) != output.end();
}

/// The search must find what brute force does, in that order, as far as the search goes.
inline void expect_found(const std::vector<Hypothesis>& found, const std::vector<Ranked>& expected,
                         std::size_t count) {
  ASSERT_EQ(found.size(), std::min(count, expected.size()));
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].tokens, expected[i].output) << "rank " << i;
    EXPECT_NEAR(found[i].score, expected[i].score, 1e-5) << "rank " << i;
  }
}

}  // namespace attend
