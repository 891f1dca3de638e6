#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "attend/train/engine.h"
#include "tests/support/numbers.h"

namespace attend::testing {

inline constexpr int64_t kVocabulary = 24;
inline constexpr int32_t kBos = 1, kEos = 2;

inline TransformerConfig small_config() {
  TransformerConfig config = preset("tiny");
  config.source_vocabulary_size = config.target_vocabulary_size = kVocabulary;
  config.encoder_layers = config.decoder_layers = 1;
  config.d_model = 16;
  config.d_ff = 24;
  config.heads = 2;
  config.dropout = config.attention_dropout = config.ffn_dropout = 0.1F;
  config.max_length = 32;
  return config;
}

inline TrainOptions small_options() {
  TrainOptions options;
  options.model = small_config();
  options.clip_norm = 0.5;
  options.ema = 0.9;
  return options;
}

/// The same with all that there is against overfitting.
inline TrainOptions regularized_options() {
  TrainOptions options = small_options();
  options.model.encoder_layers = options.model.decoder_layers = 2;
  options.optimizer = OptimizerKind::kAdamW;
  options.weight_decay = 0.1;
  options.regularization = {
      .r_drop = 5, .layer_drop = 0.3F, .source_word_dropout = 0.1F, .target_word_dropout = 0.1F};
  return options;
}

inline void append(Sequences& sequences, const std::vector<int32_t>& tokens) {
  sequences.tokens.insert(sequences.tokens.end(), tokens.begin(), tokens.end());
  sequences.offsets.push_back(static_cast<int64_t>(sequences.tokens.size()));
}

/// Pairs of random sentences whose target is the source, backwards where `reverse` says so.
inline Batch random_batch(int64_t lanes, int64_t pairs, uint64_t seed, bool reverse = false) {
  RandomGenerator random(seed);
  Batch batch;
  batch.lanes.resize(static_cast<std::size_t>(lanes));
  for (int64_t pair = 0; pair < pairs; ++pair) {
    Lane& lane = batch.lanes[static_cast<std::size_t>(pair * lanes / pairs)];
    std::vector<int32_t> words(2 + random.uniform_index(5));
    for (int32_t& word : words) {
      word = 3 + static_cast<int32_t>(random.uniform_index(kVocabulary - 3));
    }
    std::vector<int32_t> source = words, target = words;
    if (reverse) std::reverse(target.begin(), target.end());
    source.push_back(kEos);
    append(lane.source, source);
    std::vector<int32_t> output = target;
    output.push_back(kEos);
    lane.target_output.insert(lane.target_output.end(), output.begin(), output.end());
    target.insert(target.begin(), kBos);
    append(lane.target_input, target);
    batch.target_tokens += std::ssize(output);
  }
  return batch;
}

/// A model and its engine.
class Training {
 public:
  Training(const TrainOptions& given, DType compute, int64_t workers)
      : options(given), model(options.model, compute, true) {
    model.initialize(7);
    engine = std::make_unique<Engine>(model, options, workers);
  }

  UpdateStats update(int64_t step, double rate = 1e-2) {
    return engine->update({random_batch(4, 12, static_cast<uint64_t>(step))}, step, rate);
  }
  /// The bits of all that an update changes.
  std::vector<std::vector<uint32_t>> bits() const {
    const OptimizerState state = engine->gather_state();
    return {bits_of(model.parameters().flat_master()), bits_of(state.first_moment),
            bits_of(state.second_moment), bits_of(state.average)};
  }

  TrainOptions options;
  Transformer model;
  std::unique_ptr<Engine> engine;
};

}  // namespace attend::testing
