#include "attend/models/transformer.h"

#include <cmath>

#include "attend/autograd/recompute.h"
#include "attend/base/error.h"
#include "attend/base/profile.h"
#include "attend/kernels/embedding.h"
#include "attend/kernels/gemm.h"
#include "attend/kernels/listed_product.h"
#include "attend/kernels/rotary.h"
#include "attend/nn/word_dropout.h"

namespace attend {
namespace {

RowPositions positions_of(const Offsets& offsets) {
  return std::make_shared<const std::vector<int32_t>>(positions_in_sequences(*offsets));
}

Stream run_layer(Context& context, const Stream& x, const StreamPart& layer) {
  return context.recompute ? recomputed(context, x, layer) : layer(context, x);
}

/// The sequences, and then the same once more: two passes in one, which differ in their dropout.
TokenBatch twice(const TokenBatch& batch) {
  std::vector<int32_t> tokens = batch.tokens;
  tokens.insert(tokens.end(), batch.tokens.begin(), batch.tokens.end());
  std::vector<int64_t> offsets = *batch.offsets;
  for (std::size_t i = 1; i < batch.offsets->size(); ++i) {
    offsets.push_back(batch.offsets->back() + (*batch.offsets)[i]);
  }
  return {std::move(tokens), std::make_shared<const std::vector<int64_t>>(std::move(offsets))};
}

}  // namespace

Transformer::Transformer(const TransformerConfig& config, DType compute, bool with_gradients)
    : config_(config), compute_(compute), weights_(compute) {
  build();
  parameters_.allocate(compute, with_gradients);
}

Transformer::Transformer(const TransformerConfig& config, DType weights)
    : config_(config),
      compute_(weights == DType::kInt8 ? DType::kFloat32 : weights),
      weights_(weights) {
  build();
}

void Transformer::build() {
  const TransformerConfig& config = config_;
  config.validate();
  build_tables();
  for (int64_t i = 0; i < config.encoder_layers; ++i) {
    encoder_.push_back(
        std::make_unique<EncoderLayer>(parameters_, fmt::format("encoder.layers.{}", i), config));
  }
  encoder_output_ = std::make_unique<StackOutput>(parameters_, "encoder.norm", config);
  for (int64_t i = 0; i < config.decoder_layers; ++i) {
    decoder_.push_back(
        std::make_unique<DecoderLayer>(parameters_, fmt::format("decoder.layers.{}", i), config));
  }
  decoder_output_ = std::make_unique<StackOutput>(parameters_, "decoder.norm", config);
}

void Transformer::build_tables() {
  const TransformerConfig& config = config_;
  const float deviation = 1.0F / std::sqrt(static_cast<float>(config.d_model));
  const auto table = [&](const std::string& name, int64_t rows, ParameterUse use) {
    return &parameters_.add(name, {rows, config.d_model}, normal(deviation), use);
  };
  const int64_t source = config.source_vocabulary_size, target = config.target_vocabulary_size;
  switch (config.tied_embeddings) {
    case TiedEmbeddings::kAll:
      source_embedding_ = target_embedding_ = output_projection_ =
          table("embedding", target, ParameterUse::kTableAndProduct);
      break;
    case TiedEmbeddings::kDecoder:
      source_embedding_ = table("encoder.embedding", source, ParameterUse::kTable);
      target_embedding_ = output_projection_ =
          table("decoder.embedding", target, ParameterUse::kTableAndProduct);
      break;
    case TiedEmbeddings::kNone:
      source_embedding_ = table("encoder.embedding", source, ParameterUse::kTable);
      target_embedding_ = table("decoder.embedding", target, ParameterUse::kTable);
      output_projection_ = table("output_projection", target, ParameterUse::kProduct);
      break;
  }
  const int64_t longest = config.max_length;
  if (config.positions == Positions::kLearned) {
    source_positions_ = table("encoder.positions", longest, ParameterUse::kPlain);
    target_positions_ = table("decoder.positions", longest, ParameterUse::kPlain);
  } else if (config.positions == Positions::kSinusoidal) {
    sinusoids_ = sinusoidal_positions(longest, config.d_model);
  }
}

Stream Transformer::embed(Context& context, const EmbeddingInput& input, Parameter& table,
                          Parameter* positions) const {
  return embedding(context, input, table, std::sqrt(static_cast<float>(config_.d_model)),
                   sinusoids_, positions, config_.embedding_dropout_rate(),
                   config_.norm == NormPlacement::kPost);
}

EncoderOutput Transformer::encode(Context& context, const TokenBatch& source) const {
  EmbeddingInput input{.ids = source.tokens, .offsets = source.offsets};
  input.factors = draw_word_dropout(context, context.regularization.source_word_dropout,
                                    source.offsets, KeptToken::kLast);
  Stream x = embed(context, input, *source_embedding_, source_positions_);
  const RowPositions positions = positions_of(source.offsets);
  const Dropout layers = context.common_dropout(context.regularization.layer_drop);
  for (std::size_t i = 0; i < encoder_.size(); ++i) {
    if (!layers.keeps(static_cast<int64_t>(i))) continue;
    x = run_layer(
        context, x,
        [&layer = *encoder_[i], offsets = source.offsets, positions](
            Context& within, const Stream& in) { return layer(within, in, offsets, positions); });
  }
  return {(*encoder_output_)(context, x), source.offsets};
}

Variable Transformer::decode(Context& context, const TokenBatch& target,
                             const EncoderOutput& memory, AttentionProbe* probe) const {
  EmbeddingInput input{.ids = target.tokens, .offsets = target.offsets};
  input.factors = draw_word_dropout(context, context.regularization.target_word_dropout,
                                    target.offsets, KeptToken::kFirst);
  Stream x = embed(context, input, *target_embedding_, target_positions_);
  const RowPositions positions = positions_of(target.offsets);
  const Dropout layers = context.common_dropout(context.regularization.layer_drop);
  for (std::size_t i = 0; i < decoder_.size(); ++i) {
    if (!layers.keeps(static_cast<int64_t>(i))) continue;
    const bool probed = probe != nullptr && probe->layer == static_cast<int64_t>(i);
    x = run_layer(
        context, x,
        [&layer = *decoder_[i], offsets = target.offsets, positions, memory,
         weights = probed ? &probe->weights : nullptr](Context& within, const Stream& in) {
          return layer(within, in, offsets, positions, memory, weights);
        });
  }
  return (*decoder_output_)(context, x);
}

LossSums Transformer::loss(Context& context, const TokenBatch& source, const TokenBatch& target,
                           std::span<const int32_t> target_output, float gradient_scale) {
  const float r_drop = context.training ? context.regularization.r_drop : 0;
  const Variable hidden = r_drop > 0
                              ? decode(context, twice(target), encode(context, twice(source)))
                              : decode(context, target, encode(context, source));
  const LossSums sums = project_cross_entropy(context, hidden, *output_projection_, target_output,
                                              config_.label_smoothing, gradient_scale, r_drop);
  if (context.tape != nullptr) {
    context.tape->backward();
    context.tape->finish(parameters_);
  }
  return sums;
}

Tensor Transformer::logits(Context& context, const Variable& hidden) const {
  const ProfileScope scope("output projection");
  const Tensor out =
      context.tensor({hidden.value().rows(), output_projection_->shape[0]}, DType::kFloat32);
  if (output_projection_->packed != nullptr) {
    multiply(hidden.value(), *output_projection_->packed, {}, out);
  } else {
    gemm(hidden.value(), Transpose::kNo, output_projection_->compute, Transpose::kYes, out);
  }
  return out;
}

void Transformer::best_tokens(Context& context, const Variable& hidden,
                              const TopScoresWanted& wanted, TopScores& best) const {
  const Tensor& rows = hidden.value();
  if (output_projection_->packed != nullptr) {
    const ProfileScope scope("output projection");
    project_top_scores(rows, *output_projection_->packed, wanted, best);
    return;
  }
  top_scores(logits(context, hidden), wanted, best);
}

Tensor Transformer::logits_of(Context& context, const Variable& hidden,
                              std::span<const int32_t> tokens) const {
  const ProfileScope scope("output projection");
  const Tensor& rows = hidden.value();
  const Tensor out = context.tensor({rows.rows(), std::ssize(tokens)}, DType::kFloat32);
  const Parameter& weight = *output_projection_;
  if (weight.quantized.values.defined()) {
    multiply_listed(rows, weight.quantized, tokens, out);
  } else if (weight.compute.defined()) {
    multiply_listed(rows, weight.compute, tokens, out);
  } else {
    fail("the model was loaded without the rows of its output projection, which a shortlist needs");
  }
  return out;
}

void Transformer::keep_output_rows() {
  if (output_projection_->use == ParameterUse::kProduct) {
    output_projection_->use = ParameterUse::kTableAndProduct;
  }
}

void Transformer::write_memory(Context& context, const EncoderOutput& memory,
                               std::span<const int32_t> first,
                               const std::vector<LayerCache>& caches) const {
  for (std::size_t i = 0; i < caches.size(); ++i) {
    decoder_[i]->write_memory(context, memory, first, caches[i]);
  }
}

Variable Transformer::decode_step(Context& context, const DecodingStep& step,
                                  const std::vector<LayerCache>& caches,
                                  std::span<float> memory_weights) const {
  Stream x = embed(context, step.input, *target_embedding_, target_positions_);
  for (std::size_t i = 0; i < decoder_.size(); ++i) {
    const bool last = i + 1 == decoder_.size();
    x = decoder_[i]->step(context, x, step, caches[i], last ? memory_weights : std::span<float>());
  }
  return (*decoder_output_)(context, x);
}

}  // namespace attend
