#pragma once

#include <string>
#include <utility>
#include <vector>

#include "attend/models/transformer.h"
#include "tests/support/numbers.h"

namespace attend::testing {

/// Small, with nothing that rounds to a multiple of anything.
inline TransformerConfig small_config() {
  TransformerConfig config;
  config.source_vocabulary_size = config.target_vocabulary_size = 19;
  config.encoder_layers = config.decoder_layers = 2;
  config.d_model = 12;
  config.d_ff = 23;
  config.heads = 3;
  config.max_length = 80;
  config.dropout = 0;
  return config;
}

/// A model of every kind of position, norm and attention.
inline std::vector<std::pair<std::string, TransformerConfig>> kinds_of_model() {
  std::vector<std::pair<std::string, TransformerConfig>> kinds;
  const auto add = [&](const char* name, auto change) {
    TransformerConfig config = small_config();
    change(config);
    kinds.emplace_back(name, config);
  };
  using Config = TransformerConfig;
  add("the paper", [](Config&) {});
  add("pre-norm, gelu", [](Config& c) {
    c.norm = NormPlacement::kPre;
    c.activation = Activation::kGelu;
  });
  add("rotary", [](Config& c) { c.positions = Positions::kRotary; });
  add("rotary, pre-norm, odd values", [](Config& c) {
    c.positions = Positions::kRotary;
    c.norm = NormPlacement::kPre;
    c.d_k = 6;
    c.d_v = 5;
  });
  add("learned", [](Config& c) { c.positions = Positions::kLearned; });
  add("additive", [](Config& c) { c.attention_score = AttentionScore::kAdditive; });
  add("additive, pre-norm, learned, odd", [](Config& c) {
    c.attention_score = AttentionScore::kAdditive;
    c.norm = NormPlacement::kPre;
    c.positions = Positions::kLearned;
    c.activation = Activation::kSilu;
    c.tied_embeddings = TiedEmbeddings::kNone;
    c.d_k = 5;
    c.d_v = 7;
  });
  add("odd sizes", [](Config& c) {
    c.d_model = 6;
    c.d_k = 5;
    c.d_v = 7;
    c.tied_embeddings = TiedEmbeddings::kDecoder;
  });
  return kinds;
}

/// Weights that leave nothing at 0 or 1, so that every one of them matters.
inline void fill_weights(Transformer& model, uint64_t seed) {
  model.initialize(seed);
  for (Parameter& parameter : model.parameters().parameters()) {
    std::vector<float> values = parameter.master.to_vector();
    const std::vector<float> noise = random_values(parameter.master.count(), ++seed, 0.2F);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += noise[i];
    parameter.master.assign(values);
  }
  model.parameters().refresh_compute();
}

using Sentences = std::vector<std::vector<int32_t>>;

inline TokenBatch batch_of(const Sentences& sentences) {
  TokenBatch batch;
  std::vector<int64_t> offsets{0};
  for (const auto& sentence : sentences) {
    batch.tokens.insert(batch.tokens.end(), sentence.begin(), sentence.end());
    offsets.push_back(static_cast<int64_t>(batch.tokens.size()));
  }
  batch.offsets = std::make_shared<const std::vector<int64_t>>(std::move(offsets));
  return batch;
}

/// `count` sentences of 1 to `longest` tokens below `vocabulary`.
inline Sentences random_sentences(int64_t count, int64_t longest, int64_t vocabulary,
                                  uint64_t seed) {
  RandomGenerator random(seed);
  Sentences sentences(static_cast<std::size_t>(count));
  for (auto& sentence : sentences) {
    sentence.resize(1 + random.uniform_index(static_cast<uint64_t>(longest)));
    for (int32_t& token : sentence) {
      token = static_cast<int32_t>(random.uniform_index(static_cast<uint64_t>(vocabulary)));
    }
  }
  return sentences;
}

inline Context context_for(const Transformer& model) {
  Context context;
  context.compute = model.compute();
  return context;
}

/// The decoder's output for whole target sentences, [target tokens, d_model].
inline Tensor hidden_states(const Transformer& model, const Sentences& source,
                            const Sentences& target) {
  Context context = context_for(model);
  const EncoderOutput memory = model.encode(context, batch_of(source));
  return model.decode(context, batch_of(target), memory).value();
}

/// Decodes a token at a time. Every row is a hypothesis of one sentence; from step to step it may
/// go on from another row of the same sentence, as in beam search.
class StepDecoder {
 public:
  /// sentence_of_row: the sentence that each row translates.
  StepDecoder(const Transformer& model, const Sentences& source, std::vector<int64_t> sentences)
      : model_(model),
        context_(context_for(model)),
        memory_(model.encode(context_, batch_of(source))),
        sentence_of_row_(std::move(sentences)),
        caches_(static_cast<std::size_t>(model.config().decoder_layers)),
        ancestors_(sentence_of_row_.size()) {
    for (std::size_t layer = 0; layer < caches_.size(); ++layer) {
      caches_[layer] = {model.make_self_cache(context_, layer, kMostSteps * rows()),
                        model.make_memory_cache(context_, layer, memory_.offsets->back())};
    }
    const std::vector<int32_t> first(memory_.offsets->begin(), memory_.offsets->end() - 1);
    model.write_memory(context_, memory_, first, caches_);
  }

  /// One more token for each row, which goes on from row parents[row] of the step before. Returns
  /// [rows, d_model].
  Tensor step(const std::vector<int32_t>& tokens, const std::vector<std::size_t>& parents) {
    DecodingStep step;
    step.input.ids = tokens;
    step.input.first_positions.assign(tokens.size(), length_);
    auto offsets = std::make_shared<std::vector<int64_t>>(1, 0);
    std::vector<std::vector<int32_t>> ancestors;
    for (std::size_t row = 0; row < tokens.size(); ++row) {
      offsets->push_back(static_cast<int64_t>(row) + 1);
      step.slots.push_back(static_cast<int32_t>(length_ * rows() + static_cast<int64_t>(row)));
      ancestors.push_back(ancestors_[parents[row]]);
      ancestors.back().push_back(step.slots.back());
      step.self_view.slots.insert(step.self_view.slots.end(), ancestors.back().begin(),
                                  ancestors.back().end());
      step.self_view.offsets.push_back(static_cast<int64_t>(step.self_view.slots.size()));
      const auto sentence = static_cast<std::size_t>(sentence_of_row_[row]);
      const std::vector<int64_t>& sources = *memory_.offsets;
      step.memory_view.first.push_back(sources[sentence]);
      step.memory_view.count.push_back(sources[sentence + 1] - sources[sentence]);
    }
    ancestors_ = std::move(ancestors);
    step.input.offsets = std::move(offsets);
    step.positions = std::make_shared<const std::vector<int32_t>>(tokens.size(),
                                                                  static_cast<int32_t>(length_++));
    return model_.decode_step(context_, step, caches_).value();
  }

  Tensor logits(const Tensor& hidden) {
    return model_.logits(context_, Variable(hidden, hidden.dtype()));
  }
  int64_t rows() const { return static_cast<int64_t>(sentence_of_row_.size()); }

 private:
  static constexpr int64_t kMostSteps = 80;

  const Transformer& model_;
  Context context_;
  EncoderOutput memory_;
  std::vector<int64_t> sentence_of_row_;
  std::vector<LayerCache> caches_;
  std::vector<std::vector<int32_t>> ancestors_;
  int64_t length_ = 0;
};

}  // namespace attend::testing
