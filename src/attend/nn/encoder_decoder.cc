#include "attend/nn/encoder_decoder.h"

namespace attend {

void DecodingStep::resize(std::size_t rows, std::size_t seen) {
  input.ids.resize(rows);
  input.first_positions.resize(rows);
  slots.resize(rows);
  self_view.offsets.resize(rows + 1);
  self_view.slots.resize(seen);
  memory_view.first.resize(rows);
  memory_view.count.resize(rows);
}

EncoderLayer::EncoderLayer(ParameterSet& parameters, const std::string& name,
                           const TransformerConfig& config)
    : self_attention_(parameters, name + ".self_attention", config, MultiHeadAttention::Kind::kSelf,
                      false),
      self_attention_connection_(parameters, name + ".self_attention_norm", config),
      feed_forward_(parameters, name + ".feed_forward", config),
      feed_forward_connection_(parameters, name + ".feed_forward_norm", config) {}

Stream EncoderLayer::operator()(Context& context, const Stream& x, const Offsets& offsets,
                                const RowPositions& positions) const {
  const Stream attended = self_attention_connection_(context, x, [&](const Variable& in) {
    return self_attention_(context, in, offsets, positions);
  });
  return feed_forward_connection_(context, attended,
                                  [&](const Variable& in) { return feed_forward_(context, in); });
}

DecoderLayer::DecoderLayer(ParameterSet& parameters, const std::string& name,
                           const TransformerConfig& config)
    : self_attention_(parameters, name + ".self_attention", config, MultiHeadAttention::Kind::kSelf,
                      true),
      self_attention_connection_(parameters, name + ".self_attention_norm", config),
      cross_attention_(parameters, name + ".cross_attention", config,
                       MultiHeadAttention::Kind::kCross, false),
      cross_attention_connection_(parameters, name + ".cross_attention_norm", config),
      feed_forward_(parameters, name + ".feed_forward", config),
      feed_forward_connection_(parameters, name + ".feed_forward_norm", config) {}

template <typename SelfAttend, typename CrossAttend>
Stream DecoderLayer::run(Context& context, const Stream& x, const SelfAttend& self_attend,
                         const CrossAttend& cross_attend) const {
  const Stream self_attended = self_attention_connection_(context, x, self_attend);
  const Stream attended = cross_attention_connection_(context, self_attended, cross_attend);
  return feed_forward_connection_(context, attended,
                                  [&](const Variable& in) { return feed_forward_(context, in); });
}

Stream DecoderLayer::operator()(Context& context, const Stream& x, const Offsets& offsets,
                                const RowPositions& positions, const EncoderOutput& memory,
                                Tensor* weights) const {
  return run(
      context, x,
      [&](const Variable& in) { return self_attention_(context, in, offsets, positions); },
      [&](const Variable& in) {
        return cross_attention_(context, in, offsets, memory.operand, memory.offsets, weights);
      });
}

Stream DecoderLayer::step(Context& context, const Stream& x, const DecodingStep& step,
                          const LayerCache& cache, std::span<float> memory_weights) const {
  return run(
      context, x,
      [&](const Variable& in) {
        return self_attention_.step(context, in, step.positions, cache.self, step.slots,
                                    step.self_view);
      },
      [&](const Variable& in) {
        return cross_attention_.step(context, in, cache.memory, step.memory_view, memory_weights);
      });
}

StackOutput::StackOutput(ParameterSet& parameters, const std::string& name,
                         const TransformerConfig& config)
    : norm_(config.norm == NormPlacement::kPre
                ? std::make_unique<LayerNorm>(parameters, name, config.d_model)
                : nullptr) {}

Variable StackOutput::operator()(Context& context, const Stream& x) const {
  return norm_ != nullptr ? layer_norm(context, x.residual, norm_->gain(), norm_->bias())
                          : x.operand;
}

}  // namespace attend
