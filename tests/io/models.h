#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "attend/data/tokenizer.h"
#include "attend/io/safetensors.h"
#include "attend/models/config.h"
#include "tests/io/support.h"

namespace attend {

/// A tokenizer of some text, trained once for each `vocabulary_size` and kept.
inline std::shared_ptr<const Tokenizer> small_tokenizer(int64_t vocabulary_size = 300) {
  static std::map<int64_t, std::shared_ptr<const Tokenizer>> made;
  auto& tokenizer = made[vocabulary_size];
  if (tokenizer == nullptr) {
    TokenizerTrainingOptions options;
    options.vocabulary_size = vocabulary_size;
    int lines = 0;
    tokenizer = std::make_shared<const Tokenizer>(Tokenizer::train(options, [&](std::string& line) {
      line = fmt::format("the boat and the coat number {} are in the water", lines);
      return ++lines < 100;
    }));
  }
  return tokenizer;
}

/// One layer each, so small that a test may write it a thousand times.
inline TransformerConfig small_config(int64_t source = 300, int64_t target = 300) {
  TransformerConfig config;
  config.source_vocabulary_size = source;
  config.target_vocabulary_size = target;
  config.encoder_layers = config.decoder_layers = 1;
  config.d_model = 4;
  config.d_ff = 6;
  config.heads = 2;
  if (source != target) config.tied_embeddings = TiedEmbeddings::kDecoder;
  return config;
}

/// As many weights as the configuration has, under two names; all hold `value`.
inline NamedTensors small_weights(const TransformerConfig& config, float value = 1) {
  const int64_t count = parameter_count(config);
  const auto of = [value](int64_t size) {
    return Tensor::from(std::vector<float>(static_cast<std::size_t>(size), value), {size});
  };
  return {{"decoder.weight", of(100)}, {"encoder.weight", of(count - 100)}};
}

}  // namespace attend
