#include "attend/nn/layers.h"

namespace attend {
namespace {

ActivationKind kind_of(Activation activation) {
  switch (activation) {
    case Activation::kGelu:
      return ActivationKind::kGelu;
    case Activation::kSilu:
      return ActivationKind::kSilu;
    case Activation::kRelu:
      break;
  }
  return ActivationKind::kRelu;
}

}  // namespace

Linear::Linear(ParameterSet& parameters, const std::string& name, int64_t in, int64_t out,
               int64_t fan_out)
    : weight_(&parameters.add(name + ".weight", {out, in},
                              xavier_uniform(in, fan_out > 0 ? fan_out : out),
                              ParameterUse::kProduct)),
      bias_(&parameters.add(name + ".bias", {out}, constant(0))) {}

Variable Linear::operator()(Context& context, const Variable& x) const {
  return linear(context, x, *weight_, bias_);
}

LayerNorm::LayerNorm(ParameterSet& parameters, const std::string& name, int64_t d_model)
    : gain_(&parameters.add(name + ".gain", {d_model}, constant(1))),
      bias_(&parameters.add(name + ".bias", {d_model}, constant(0))) {}

FeedForward::FeedForward(ParameterSet& parameters, const std::string& name,
                         const TransformerConfig& config)
    : inner_(parameters, name + ".inner", config.d_model, config.d_ff),
      outer_(parameters, name + ".outer", config.d_ff, config.d_model),
      activation_(kind_of(config.activation)),
      dropout_(config.ffn_dropout) {}

Variable FeedForward::operator()(Context& context, const Variable& x) const {
  return outer_(context, activation(context, inner_(context, x), activation_, dropout_));
}

SublayerConnection::SublayerConnection(ParameterSet& parameters, const std::string& name,
                                       const TransformerConfig& config)
    : norm_(parameters, name, config.d_model), placement_(config.norm), dropout_(config.dropout) {}

}  // namespace attend
