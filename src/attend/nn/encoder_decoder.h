#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attend/nn/attention.h"

namespace attend {

/// Self-attention, then feed-forward, each in a sub-layer connection (Vaswani et al. 2017, §3.1).
class EncoderLayer {
 public:
  EncoderLayer(ParameterSet& parameters, const std::string& name, const TransformerConfig& config);
  Stream operator()(Context& context, const Stream& x, const Offsets& offsets,
                    const RowPositions& positions) const;

 private:
  MultiHeadAttention self_attention_;
  SublayerConnection self_attention_connection_;
  FeedForward feed_forward_;
  SublayerConnection feed_forward_connection_;
};

/// What the encoder found, for the decoder to ask.
struct EncoderOutput {
  Variable operand;  ///< compute dtype [source tokens, d_model]
  Offsets offsets;
};

/// What a decoding step needs besides its rows: one row a hypothesis.
struct DecodingStep {
  RowPositions positions;
  int64_t first_slot = 0;  ///< where this step's keys and values go in the caches
  CacheView self_view;     ///< each row's ancestors, itself included
  CacheView memory_view;   ///< each row's source tokens
};

/// One decoder layer's memory while decoding.
struct LayerCache {
  KeyValueCache self;
  KeyValueCache memory;
};

/// Causal self-attention, encoder–decoder attention, feed-forward.
class DecoderLayer {
 public:
  DecoderLayer(ParameterSet& parameters, const std::string& name, const TransformerConfig& config);
  Stream operator()(Context& context, const Stream& x, const Offsets& offsets,
                    const RowPositions& positions, const EncoderOutput& memory) const;
  Stream step(Context& context, const Stream& x, const DecodingStep& step, LayerCache& cache) const;
  LayerCache make_cache(Context& context, const EncoderOutput& memory, int64_t slots) const;
  KeyValueCache make_self_cache(const Context& context, int64_t slots) const {
    return self_attention_.make_cache(context, slots);
  }

 private:
  template <typename SelfAttend, typename CrossAttend>
  Stream run(Context& context, const Stream& x, const SelfAttend& self_attend,
             const CrossAttend& cross_attend) const;

  MultiHeadAttention self_attention_;
  SublayerConnection self_attention_connection_;
  MultiHeadAttention cross_attention_;
  SublayerConnection cross_attention_connection_;
  FeedForward feed_forward_;
  SublayerConnection feed_forward_connection_;
};

/// The output of a stack, ready for a matrix product: pre-norm has one more LayerNorm here.
class StackOutput {
 public:
  StackOutput(ParameterSet& parameters, const std::string& name, const TransformerConfig& config);
  Variable operator()(Context& context, const Stream& x) const;

 private:
  std::unique_ptr<LayerNorm> norm_;
};

}  // namespace attend
