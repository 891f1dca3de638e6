#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "attend/kernels/top_scores.h"
#include "attend/models/config.h"
#include "attend/nn/encoder_decoder.h"

namespace attend {

/// Sequences of token ids, end to end: sequence i is tokens [offsets[i], offsets[i + 1]).
struct TokenBatch {
  std::vector<int32_t> tokens;
  Offsets offsets;

  int64_t count() const { return static_cast<int64_t>(offsets->size()) - 1; }
};

/// The encoder–decoder Transformer of Vaswani et al. 2017, with every choice of TransformerConfig.
/// One object holds the weights; any number of threads may run it at once, each with a context of
/// its own.
class Transformer {
 public:
  /// Builds the model and allocates its weights (undefined until initialize() or loaded).
  Transformer(const TransformerConfig& config, DType compute, bool with_gradients);
  /// Builds a model that only runs; its weights are undefined until parameters().load() packs them
  /// in `weights`. With int8 weights, activations are float32.
  Transformer(const TransformerConfig& config, DType weights);
  Transformer(const Transformer&) = delete;
  Transformer& operator=(const Transformer&) = delete;

  const TransformerConfig& config() const { return config_; }
  DType compute() const { return compute_; }  ///< of activations
  DType weights() const { return weights_; }  ///< of what products multiply by
  ParameterSet& parameters() { return parameters_; }
  const ParameterSet& parameters() const { return parameters_; }
  void initialize(uint64_t seed) { parameters_.initialize(seed); }

  /// source: tokens and end-of-sentence. Dropout and recording as the context says.
  EncoderOutput encode(Context& context, const TokenBatch& source) const;

  /// target: begin-of-sentence and tokens. Returns [target tokens, d_model] in the compute dtype.
  Variable decode(Context& context, const TokenBatch& target, const EncoderOutput& memory) const;

  /// Loss of the targets that follow each token of `target` (see project_cross_entropy), and, with
  /// a tape, the gradients of everything: plays the tape back.
  LossSums loss(Context& context, const TokenBatch& source, const TokenBatch& target,
                std::span<const int32_t> target_output, float gradient_scale);

  /// float32 [rows, target vocabulary].
  Tensor logits(Context& context, const Variable& hidden) const;
  /// The `k` tokens with the highest logits for each row, and the logits of the tokens `wanted`. A
  /// model that only runs never makes a whole row of logits.
  void best_tokens(Context& context, const Variable& hidden, int64_t k,
                   std::span<const int32_t> wanted, TopScores& best) const;

  /// Caches for decoding from `memory`, with room for `slots` rows in each self-attention.
  std::vector<LayerCache> make_caches(Context& context, const EncoderOutput& memory,
                                      int64_t slots) const;
  /// Moves the self-attention caches into larger ones.
  void grow_caches(Context& context, std::vector<LayerCache>& caches, int64_t slots) const;
  /// One token of each hypothesis; returns [rows, d_model] in the compute dtype.
  Variable decode_step(Context& context, std::span<const int32_t> tokens, const DecodingStep& step,
                       std::vector<LayerCache>& caches) const;

 private:
  Stream embed(Context& context, const EmbeddingInput& input, Parameter& table,
               Parameter* positions) const;

  void build();
  void build_tables();

  TransformerConfig config_;
  DType compute_;
  DType weights_;
  ParameterSet parameters_;
  Parameter* source_embedding_ = nullptr;
  Parameter* target_embedding_ = nullptr;
  Parameter* output_projection_ = nullptr;
  Parameter* source_positions_ = nullptr;  ///< learned
  Parameter* target_positions_ = nullptr;
  Tensor sinusoids_;
  std::vector<std::unique_ptr<EncoderLayer>> encoder_;
  std::vector<std::unique_ptr<DecoderLayer>> decoder_;
  std::unique_ptr<StackOutput> encoder_output_;
  std::unique_ptr<StackOutput> decoder_output_;
};

}  // namespace attend
