#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "attend/base/random.h"
#include "attend/kernels/compute_thread.h"
#include "attend/models/transformer.h"
#include "attend/search/beam_search.h"

namespace attend {

using TokenSequences = std::vector<std::vector<int32_t>>;

/// Two layers each, small and quick.
inline TransformerConfig search_config(int64_t vocabulary) {
  TransformerConfig config;
  config.source_vocabulary_size = config.target_vocabulary_size = vocabulary;
  config.encoder_layers = config.decoder_layers = 2;
  config.d_model = 32;
  config.d_ff = 48;
  config.heads = 4;
  config.max_length = 128;
  config.tied_embeddings = TiedEmbeddings::kNone;
  return config;
}

/// The kinds of positions, norms and attention that decode in different ways.
inline std::vector<TransformerConfig> search_configs(int64_t vocabulary) {
  std::vector<TransformerConfig> configs(4, search_config(vocabulary));
  configs[1].norm = NormPlacement::kPre;
  configs[1].positions = Positions::kRotary;
  configs[2].positions = Positions::kLearned;
  configs[2].d_k = 5;
  configs[2].d_v = 7;
  configs[3].attention_score = AttentionScore::kAdditive;
  configs[3].tied_embeddings = TiedEmbeddings::kAll;
  return configs;
}

/// Random weights. The output projection is scaled up so that some tokens are far likelier than
/// others, and the end of sentence (id 2) further, so that outputs have different lengths.
inline std::shared_ptr<Transformer> random_model(const TransformerConfig& config, DType compute,
                                                 uint64_t seed, float sharpness = 3.0F) {
  auto model = std::make_shared<Transformer>(config, compute, false);
  model->initialize(seed);
  const bool tied = config.tied_embeddings == TiedEmbeddings::kAll;
  const Tensor& table = model->parameters().find(tied ? "embedding" : "output_projection").master;
  std::vector<float> values = table.to_vector();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool eos = static_cast<int64_t>(i) / config.d_model == 2;
    values[i] *= sharpness * (eos ? 1.5F : 1.0F);
  }
  table.assign(values);
  model->parameters().refresh_compute();
  return model;
}

/// Sentences of `shortest` to `longest` tokens, none of them special.
inline TokenSequences random_sources(int64_t count, uint64_t shortest, uint64_t longest,
                                     int64_t vocabulary, uint64_t seed) {
  RandomGenerator random(seed);
  TokenSequences sources(static_cast<std::size_t>(count));
  for (std::vector<int32_t>& source : sources) {
    source.resize(shortest + random.uniform_index(longest - shortest + 1));
    for (int32_t& token : source) {
      token = 3 + static_cast<int32_t>(random.uniform_index(static_cast<uint64_t>(vocabulary) - 3));
    }
  }
  return sources;
}

/// By one model or an ensemble.
inline std::vector<std::vector<Hypothesis>> search_all(
    const std::vector<const Transformer*>& models, const TokenSequences& sources,
    const SearchOptions& options, const SearchTokens& tokens = {.suppressed = {0}}) {
  prepare_compute_thread();
  MemoryPool memory;
  std::vector<SearchRequest> requests;
  for (const std::vector<int32_t>& source : sources) {
    requests.push_back({.source = source, .constraints = {}});
  }
  return beam_search(models, memory, requests, tokens, options);
}

inline std::vector<std::vector<Hypothesis>> search_all(
    const Transformer& model, const TokenSequences& sources, const SearchOptions& options,
    const SearchTokens& tokens = {.suppressed = {0}}) {
  return search_all(std::vector<const Transformer*>{&model}, sources, options, tokens);
}

/// Log-probabilities of every token after every token of bos + output, by a full decode:
/// [output + 1][vocabulary].
inline std::vector<std::vector<double>> decode_in_full(const Transformer& model,
                                                       std::vector<int32_t> source,
                                                       std::vector<int32_t> output) {
  Context context{.compute = model.compute()};
  const auto batch = [](std::vector<int32_t> tokens) {
    const auto length = std::ssize(tokens);
    return TokenBatch{std::move(tokens), std::make_shared<const std::vector<int64_t>>(
                                             std::vector<int64_t>{0, length})};
  };
  source.push_back(2);
  output.insert(output.begin(), 1);
  const EncoderOutput memory = model.encode(context, batch(std::move(source)));
  const Variable hidden = model.decode(context, batch(std::move(output)), memory);
  const Tensor logits = model.logits(context, hidden);
  const std::vector<float> scores = logits.to_vector();
  const auto columns = static_cast<std::size_t>(logits.columns());
  std::vector<std::vector<double>> rows;
  for (std::size_t at = 0; at < scores.size(); at += columns) {
    double sum = 0;
    for (std::size_t i = 0; i < columns; ++i) sum += std::exp(static_cast<double>(scores[at + i]));
    rows.emplace_back();
    for (std::size_t i = 0; i < columns; ++i) {
      rows.back().push_back(static_cast<double>(scores[at + i]) - std::log(sum));
    }
  }
  return rows;
}

/// log P(output, end of sentence | source).
inline double log_prob_in_full(const Transformer& model, const std::vector<int32_t>& source,
                               const std::vector<int32_t>& output) {
  const auto rows = decode_in_full(model, source, output);
  double sum = rows.back()[2];
  for (std::size_t i = 0; i < output.size(); ++i) {
    sum += rows[i][static_cast<std::size_t>(output[i])];
  }
  return sum;
}

}  // namespace attend
