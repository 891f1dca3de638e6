#pragma once

#include <hwy/targets.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "attend/base/random.h"
#include "attend/kernels/attention.h"

namespace attend {

/// Runs the body once for every instruction set of this machine that kernels are compiled for.
inline void for_each_target(const std::function<void()>& body) {
#if HWY_ARCH_X86
  const int64_t here = hwy::SupportedTargets();
  for (const int64_t target : {HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    if ((here & target) == 0) continue;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
#else
  body();
#endif
}

inline Tensor random_tensor(int64_t rows, int64_t columns, DType dtype, uint64_t seed,
                            float size = 1.0F) {
  RandomGenerator random(seed);
  std::vector<float> values(static_cast<std::size_t>(rows * columns));
  for (float& value : values) value = size * random.normal();
  Tensor made({rows, columns}, dtype);
  made.assign(values);
  return made;
}

inline std::vector<int64_t> offsets_of(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> offsets{0};
  for (const int64_t length : lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

/// ||actual - expected|| / ||expected||; infinite where a number is not finite.
inline double relative_error(const std::vector<float>& actual,
                             const std::vector<double>& expected) {
  double error = 0, size = 1e-30;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = actual.at(i) - expected[i];
    if (!std::isfinite(difference)) return std::numeric_limits<double>::infinity();
    error += difference * difference;
    size += expected[i] * expected[i];
  }
  return actual.size() == expected.size() ? std::sqrt(error / size)
                                          : std::numeric_limits<double>::infinity();
}

/// Attention as the formulas have it, in double precision, over rows of numbers.
struct AttentionReference {
  AttentionShape shape;
  std::vector<float> q, k, v;
  std::vector<float> w;  ///< of the additive score; empty for the dot product
  std::vector<double> out, d_q, d_k, d_v, d_w;
  std::vector<double> weights;  ///< [heads, queries, keys] of each sequence

  AttentionReference(const AttentionShape& what, const Tensor& q_in, const Tensor& k_in,
                     const Tensor& v_in, const Tensor* score_vector = nullptr)
      : shape(what), q(q_in.to_vector()), k(k_in.to_vector()), v(v_in.to_vector()) {
    if (score_vector != nullptr) w = score_vector->to_vector();
  }

  double score(int64_t head, int64_t query, int64_t key) const {
    double sum = 0;
    for (int64_t c = 0; c < shape.key_width; ++c) {
      const double from = q[q_at(head, query, c)], to = k[q_at(head, key, c)];
      sum += w.empty() ? from * to : w[w_at(head, c)] * std::tanh(from + to);
    }
    return sum * shape.scale;
  }

  /// The factor that dropout puts on a weight, from Philox directly.
  double factor(int64_t head, int64_t query, int64_t key) const {
    if (!shape.dropout.active()) return 1;
    const RandomKey& random = shape.dropout.key;
    const auto words =
        philox4x32({static_cast<uint32_t>(key / 8 * shape.heads + head),
                    static_cast<uint32_t>(query), random.op, random.lane},
                   {static_cast<uint32_t>(random.seed), static_cast<uint32_t>(random.seed >> 32)});
    const uint32_t word = words[static_cast<std::size_t>(key % 8 / 2)];
    const uint32_t bits = key % 2 == 0 ? word & 0xFFFF : word >> 16;
    return bits < shape.dropout.threshold() ? 0 : static_cast<double>(shape.dropout.scale());
  }

  /// Fills out and weights, and with d_out also the gradients.
  void run(const std::vector<float>* d_out = nullptr) {
    const std::size_t queries = q.size() / width(shape.key_width);
    out.assign(queries * width(shape.value_width), 0);
    d_q.assign(q.size(), 0);
    d_k.assign(k.size(), 0);
    d_v.assign(v.size(), 0);
    d_w.assign(w.size(), 0);
    weights.clear();
    for (std::size_t s = 0; s + 1 < shape.query_offsets.size(); ++s) {
      for (int64_t head = 0; head < shape.heads; ++head) {
        for (int64_t i = shape.query_offsets[s]; i < shape.query_offsets[s + 1]; ++i) {
          run_query(s, head, i, d_out);
        }
      }
    }
  }

 private:
  std::size_t width(int64_t of_head) const {
    return static_cast<std::size_t>(shape.heads * of_head);
  }
  std::size_t q_at(int64_t head, int64_t row, int64_t c) const {
    return static_cast<std::size_t>((row * shape.heads + head) * shape.key_width + c);
  }
  std::size_t v_at(int64_t head, int64_t row, int64_t c) const {
    return static_cast<std::size_t>((row * shape.heads + head) * shape.value_width + c);
  }
  std::size_t w_at(int64_t head, int64_t c) const {
    return static_cast<std::size_t>(head * shape.key_width + c);
  }

  void run_query(std::size_t s, int64_t head, int64_t i, const std::vector<float>* d_out) {
    const int64_t first = shape.key_offsets[s], keys = shape.key_offsets[s + 1] - first;
    const int64_t seen = shape.causal ? std::min(keys, i - shape.query_offsets[s] + 1) : keys;
    std::vector<double> p(static_cast<std::size_t>(keys), 0.0), d_p(p), factors(p);
    double greatest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t j = 0; j < seen; ++j) {
      const auto at = static_cast<std::size_t>(j);
      p[at] = score(head, i, first + j);
      factors[at] = factor(head, i, j);
      greatest = std::max(greatest, p[at]);
    }
    for (int64_t j = 0; j < seen; ++j) {
      sum += p[static_cast<std::size_t>(j)] = std::exp(p[static_cast<std::size_t>(j)] - greatest);
    }
    for (double& weight : p) weight /= sum;
    weights.insert(weights.end(), p.begin(), p.end());
    double inner = 0;
    for (int64_t j = 0; j < seen; ++j) {
      const auto at = static_cast<std::size_t>(j);
      for (int64_t c = 0; c < shape.value_width; ++c) {
        const double value = v[v_at(head, first + j, c)];
        out[v_at(head, i, c)] += p[at] * factors[at] * value;
        if (d_out == nullptr) continue;
        const double gradient = (*d_out)[v_at(head, i, c)];
        d_v[v_at(head, first + j, c)] += p[at] * factors[at] * gradient;
        d_p[at] += factors[at] * gradient * value;
      }
      inner += p[at] * d_p[at];
    }
    if (d_out == nullptr) return;
    for (int64_t j = 0; j < seen; ++j) {
      const auto at = static_cast<std::size_t>(j);
      score_gradient(head, i, first + j, shape.scale * p[at] * (d_p[at] - inner));
    }
  }

  void score_gradient(int64_t head, int64_t query, int64_t key, double d_score) {
    for (int64_t c = 0; c < shape.key_width; ++c) {
      const double from = q[q_at(head, query, c)], to = k[q_at(head, key, c)];
      if (w.empty()) {
        d_q[q_at(head, query, c)] += d_score * to;
        d_k[q_at(head, key, c)] += d_score * from;
      } else {
        const double bent = std::tanh(from + to);
        const double gradient = d_score * w[w_at(head, c)] * (1 - bent * bent);
        d_q[q_at(head, query, c)] += gradient;
        d_k[q_at(head, key, c)] += gradient;
        d_w[w_at(head, c)] += d_score * bent;
      }
    }
  }
};

}  // namespace attend
