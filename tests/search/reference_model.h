#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "attend/models/transformer.h"

namespace attend::testing {

/// The Transformer of Vaswani et al. 2017 (post-norm, sinusoids, relu, scaled dot product, tables
/// not tied) in double precision, one number at a time, from a model's weights. It shares no code
/// with what it is held against.
class ReferenceModel {
 public:
  using Row = std::vector<double>;
  using Matrix = std::vector<Row>;

  explicit ReferenceModel(const Transformer& model) : model_(model), config_(model.config()) {}

  struct Scores {
    Row log_probs;                  ///< of each target token and the end of sentence (id 2)
    std::vector<Matrix> attention;  ///< encoder–decoder, of each layer, mean over heads
  };
  Scores score(std::vector<int32_t> source, std::vector<int32_t> target) const {
    source.push_back(2);
    std::vector<int32_t> inputs = target;
    inputs.insert(inputs.begin(), 1);
    target.push_back(2);
    const Matrix memory = run("encoder", source, nullptr, nullptr);
    Scores scores;
    const Matrix hidden = run("decoder", inputs, &memory, &scores.attention);
    const Matrix table = matrix("output_projection");
    for (std::size_t i = 0; i < target.size(); ++i) {
      Row logits;
      double sum = 0;
      for (const Row& row : table) logits.push_back(dot(row, hidden[i]));
      for (const double logit : logits) sum += std::exp(logit);
      scores.log_probs.push_back(logits[static_cast<std::size_t>(target[i])] - std::log(sum));
    }
    return scores;
  }

 private:
  static double dot(const Row& a, const Row& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  }

  Row vector(const std::string& name) const {
    for (const Parameter& parameter : model_.parameters().parameters()) {
      if (parameter.name != name) continue;
      const std::vector<float> values = parameter.master.to_vector();
      return {values.begin(), values.end()};
    }
    throw std::out_of_range(name);
  }
  Matrix matrix(const std::string& name) const {
    const Row all = vector(name);
    const auto columns = name.ends_with("outer.weight") ? config_.d_ff : config_.d_model;
    Matrix rows;
    for (auto at = all.begin(); at != all.end(); at += columns) rows.emplace_back(at, at + columns);
    return rows;
  }

  Matrix linear(const std::string& name, const Matrix& x) const {
    const Matrix weight = matrix(name + ".weight");
    const Row bias = vector(name + ".bias");
    Matrix y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      for (std::size_t o = 0; o < bias.size(); ++o) {
        y[i].push_back(dot(weight[o], x[i]) + bias[o]);
      }
    }
    return y;
  }

  /// LayerNorm(x + y).
  Matrix add_and_norm(const std::string& name, Matrix x, const Matrix& y) const {
    const Row gain = vector(name + ".gain"), bias = vector(name + ".bias");
    for (std::size_t i = 0; i < x.size(); ++i) {
      for (std::size_t c = 0; c < gain.size(); ++c) x[i][c] += y[i][c];
      const auto width = static_cast<double>(gain.size());
      const double mean = std::accumulate(x[i].begin(), x[i].end(), 0.0) / width;
      double variance = 0;
      for (const double value : x[i]) variance += (value - mean) * (value - mean) / width;
      for (std::size_t c = 0; c < gain.size(); ++c) {
        x[i][c] = (x[i][c] - mean) / std::sqrt(variance + 1e-5) * gain[c] + bias[c];
      }
    }
    return x;
  }

  static Matrix columns(const Matrix& x, std::size_t first, std::size_t count) {
    Matrix part;
    for (const Row& row : x) {
      const auto begin = row.begin() + static_cast<std::ptrdiff_t>(first);
      part.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(count));
    }
    return part;
  }

  /// All heads; `weights` gets their mean.
  Matrix attend(const Matrix& q, const Matrix& k, const Matrix& v, bool causal,
                Matrix& weights) const {
    const auto heads = static_cast<std::size_t>(config_.heads);
    const std::size_t width = q[0].size() / heads;
    Matrix out(q.size(), Row(v[0].size(), 0.0));
    weights.assign(q.size(), Row(k.size(), 0.0));
    for (std::size_t h = 0; h < heads; ++h) {
      const Matrix head_q = columns(q, h * width, width), head_k = columns(k, h * width, width);
      for (std::size_t i = 0; i < q.size(); ++i) {
        const std::size_t seen = causal ? i + 1 : k.size();
        Row scores;
        for (std::size_t j = 0; j < seen; ++j) {
          scores.push_back(std::exp(dot(head_q[i], head_k[j]) / std::sqrt(double(width))));
        }
        const double sum = std::accumulate(scores.begin(), scores.end(), 0.0);
        for (std::size_t j = 0; j < seen; ++j) {
          weights[i][j] += scores[j] / sum / static_cast<double>(heads);
          for (std::size_t c = h * width; c < (h + 1) * width; ++c) {
            out[i][c] += scores[j] / sum * v[j][c];
          }
        }
      }
    }
    return out;
  }

  Matrix run(const std::string& stack, const std::vector<int32_t>& ids, const Matrix* memory,
             std::vector<Matrix>* attention) const {
    const auto d = static_cast<std::size_t>(config_.d_model);
    const Matrix table = matrix(stack + ".embedding");
    Matrix x;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      x.push_back(table[static_cast<std::size_t>(ids[i])]);
      for (std::size_t c = 0; c < d; ++c) {
        const double angle = double(i) / std::pow(10000.0, double(c - c % 2) / double(d));
        x[i][c] = x[i][c] * std::sqrt(double(d)) + (c % 2 == 0 ? std::sin(angle) : std::cos(angle));
      }
    }
    const int64_t layers = memory ? config_.decoder_layers : config_.encoder_layers;
    for (int64_t layer = 0; layer < layers; ++layer) {
      const std::string name = stack + ".layers." + std::to_string(layer);
      Matrix weights;
      const Matrix qkv = linear(name + ".self_attention.qkv", x);
      const Matrix own = attend(columns(qkv, 0, d), columns(qkv, d, d), columns(qkv, 2 * d, d),
                                memory != nullptr, weights);
      x = add_and_norm(name + ".self_attention_norm", x,
                       linear(name + ".self_attention.output", own));
      if (memory != nullptr) {
        const Matrix kv = linear(name + ".cross_attention.kv", *memory);
        const Matrix found = attend(linear(name + ".cross_attention.q", x), columns(kv, 0, d),
                                    columns(kv, d, d), false, weights);
        attention->push_back(weights);
        x = add_and_norm(name + ".cross_attention_norm", x,
                         linear(name + ".cross_attention.output", found));
      }
      Matrix inner = linear(name + ".feed_forward.inner", x);
      for (Row& row : inner) {
        for (double& value : row) value = std::max(value, 0.0);
      }
      x = add_and_norm(name + ".feed_forward_norm", x, linear(name + ".feed_forward.outer", inner));
    }
    return x;
  }

  const Transformer& model_;
  const TransformerConfig& config_;
};

}  // namespace attend::testing
