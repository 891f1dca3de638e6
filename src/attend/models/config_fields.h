#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "attend/models/config.h"

namespace attend {

/// Calls `visit(name, field)` for every field, in the order of config.json.
template <typename Config, typename Visitor>
void visit_fields(Config& config, Visitor&& visit) {
  visit("source_vocabulary_size", config.source_vocabulary_size);
  visit("target_vocabulary_size", config.target_vocabulary_size);
  visit("encoder_layers", config.encoder_layers);
  visit("decoder_layers", config.decoder_layers);
  visit("d_model", config.d_model);
  visit("d_ff", config.d_ff);
  visit("heads", config.heads);
  visit("d_k", config.d_k);
  visit("d_v", config.d_v);
  visit("dropout", config.dropout);
  visit("attention_dropout", config.attention_dropout);
  visit("ffn_dropout", config.ffn_dropout);
  visit("embedding_dropout", config.embedding_dropout);
  visit("label_smoothing", config.label_smoothing);
  visit("positions", config.positions);
  visit("norm", config.norm);
  visit("activation", config.activation);
  visit("tied_embeddings", config.tied_embeddings);
  visit("attention_score", config.attention_score);
  visit("max_length", config.max_length);
}

}  // namespace attend
