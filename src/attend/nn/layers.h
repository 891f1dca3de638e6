#pragma once

#include <string>

#include "attend/autograd/ops.h"
#include "attend/models/config.h"

namespace attend {

/// y = x Wᵀ + b. The weight is stored [out, in], as PyTorch does.
class Linear {
 public:
  /// Glorot's initial weights; a part of a wider projection gives that one's width as fan-out.
  Linear(ParameterSet& parameters, const std::string& name, int64_t in, int64_t out,
         int64_t fan_out = 0);
  Variable operator()(Context& context, const Variable& x) const;

 private:
  Parameter* weight_;
  Parameter* bias_;
};

/// Ba et al. 2016.
class LayerNorm {
 public:
  LayerNorm(ParameterSet& parameters, const std::string& name, int64_t d_model);
  Parameter& gain() const { return *gain_; }
  Parameter& bias() const { return *bias_; }

 private:
  Parameter* gain_;
  Parameter* bias_;
};

/// FFN(x) = dropout(f(x W1 + b1)) W2 + b2 (Vaswani et al. 2017, §3.3).
class FeedForward {
 public:
  FeedForward(ParameterSet& parameters, const std::string& name, const TransformerConfig& config);
  Variable operator()(Context& context, const Variable& x) const;

 private:
  Linear inner_;
  Linear outer_;
  ActivationKind activation_;
  float dropout_;
};

/// The wrapper around every sub-layer: LayerNorm(x + dropout(Sublayer(x))) in post-norm (§3.1,
/// §5.4), x + dropout(Sublayer(LayerNorm(x))) in pre-norm.
class SublayerConnection {
 public:
  SublayerConnection(ParameterSet& parameters, const std::string& name,
                     const TransformerConfig& config);

  template <typename Sublayer>
  Stream operator()(Context& context, const Stream& x, const Sublayer& sublayer) const {
    if (placement_ == NormPlacement::kPre) {
      const Variable y = sublayer(layer_norm(context, x.residual, norm_.gain(), norm_.bias()));
      return {residual(context, x.residual, y, dropout_), {}};
    }
    const Variable y = sublayer(x.operand);
    return residual_norm(context, x.residual, y, dropout_, norm_.gain(), norm_.bias());
  }

 private:
  LayerNorm norm_;
  NormPlacement placement_;
  float dropout_;
};

}  // namespace attend
