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

/// A decoding step: one token of each hypothesis, a row each.
struct DecodingStep {
  EmbeddingInput input;        ///< every row a sequence of one token; its position
  RowPositions positions;      ///< the same positions
  std::vector<int32_t> slots;  ///< where each row's keys and values go in the self-attention caches
  CacheView self_view;         ///< each row's ancestors, itself included
  MemoryView memory_view;      ///< each row's source tokens

  /// Room for so many rows, with so many slots to see in all; `positions` and the input's offsets
  /// are the caller's.
  void resize(std::size_t rows, std::size_t seen);
};

/// One decoder layer's memory while decoding. Nothing in it belongs to a place: rows are given out
/// by whoever decodes.
struct LayerCache {
  KeyValueCache self;    ///< a slot for each token of the outputs
  KeyValueCache memory;  ///< a row for each token of the sources
};

/// Causal self-attention, encoder–decoder attention, feed-forward.
class DecoderLayer {
 public:
  DecoderLayer(ParameterSet& parameters, const std::string& name, const TransformerConfig& config);
  /// `weights`: of the encoder–decoder attention, see MultiHeadAttention.
  Stream operator()(Context& context, const Stream& x, const Offsets& offsets,
                    const RowPositions& positions, const EncoderOutput& memory,
                    Tensor* weights = nullptr) const;
  /// memory_weights: see MultiHeadAttention::step; empty where nobody asks.
  Stream step(Context& context, const Stream& x, const DecodingStep& step, const LayerCache& cache,
              std::span<float> memory_weights) const;
  KeyValueCache make_self_cache(const Context& context, DType dtype, int64_t slots) const {
    return self_attention_.make_cache(context, dtype, slots);
  }
  KeyValueCache make_memory_cache(const Context& context, DType dtype, int64_t rows) const {
    return cross_attention_.make_cache(context, dtype, rows);
  }
  /// Projects the memory, once for all steps and hypotheses; see MultiHeadAttention.
  void write_memory(Context& context, const EncoderOutput& memory, std::span<const int32_t> first,
                    const LayerCache& cache) const {
    cross_attention_.write_memory(context, memory.operand, memory.offsets, first, cache.memory);
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
