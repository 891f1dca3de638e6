#include "attend/kernels/softmax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/support/numbers.h"
#include "tests/support/targets.h"

namespace attend::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Expected {
  double loss = 0, nll = 0;
  int64_t correct = 0;
  std::vector<double> gradient;
};

/// The definition, in double.
Expected expected_loss(const std::vector<float>& logits, const std::vector<int32_t>& targets,
                       double smoothing, double scale) {
  Expected result;
  const std::size_t columns = logits.size() / targets.size();
  for (std::size_t row = 0; row < targets.size(); ++row) {
    const float* x = logits.data() + row * columns;
    const auto target = static_cast<std::size_t>(targets[row]);
    const double max = static_cast<double>(*std::max_element(x, x + columns));
    double sum = 0;
    for (std::size_t i = 0; i < columns; ++i) sum += std::exp(static_cast<double>(x[i]) - max);
    const double log_sum = max + std::log(sum);
    for (std::size_t i = 0; i < columns; ++i) {
      const double log_p = static_cast<double>(x[i]) - log_sum;
      const double weight =
          smoothing / static_cast<double>(columns) + (i == target ? 1 - smoothing : 0.0);
      result.loss -= weight * log_p;
      if (i == target) result.nll -= log_p;
      result.gradient.push_back((std::exp(log_p) - weight) * scale);
    }
    result.correct += static_cast<double>(x[target]) == max ? 1 : 0;
  }
  return result;
}

TEST(CrossEntropy, AgreesWithDoubles) {
  for (const int64_t columns : {1, 2, 5, 16, 31, 32, 33, 1000}) {
    for (const float smoothing : {0.0F, 0.1F}) {
      for (const float size : {1.0F, 30.0F}) {
        constexpr int64_t kRows = 4;
        std::vector<int32_t> targets;
        for (int64_t row = 0; row < kRows; ++row) {
          targets.push_back(static_cast<int32_t>(row * 7 % columns));
        }
        const Tensor logits = random_tensor({kRows, columns}, 3, DType::kFloat32, size);
        const std::vector<float> before = logits.to_vector();
        const auto expected = expected_loss(before, targets, static_cast<double>(smoothing), 0.25);
        for_each_instruction_set([&] {
          for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
            logits.assign(before);
            const Tensor gradient({kRows, columns}, dtype);
            const LossSums sums = cross_entropy(logits, targets, smoothing, 0.25F, gradient);
            EXPECT_NEAR(sums.loss, expected.loss, 1e-6 * (1 + expected.loss));
            EXPECT_NEAR(sums.nll, expected.nll, 1e-6 * (1 + expected.nll));
            EXPECT_EQ(sums.tokens, kRows);
            EXPECT_EQ(sums.correct, expected.correct);
            EXPECT_LE(relative_error(gradient.to_vector(), expected.gradient),
                      dtype == DType::kFloat32 ? 1e-5 : 5e-3)
                << columns;
          }
          logits.assign(before);
          EXPECT_NEAR(cross_entropy(logits, targets, smoothing, 1, Tensor()).loss, expected.loss,
                      1e-6 * (1 + expected.loss));
        });
      }
    }
  }
}

TEST(CrossEntropy, OneClassIsCertain) {
  const Tensor logits = Tensor::from({5}, {1, 1}), gradient({1, 1}, DType::kFloat32);
  const std::vector<int32_t> target = {0};
  const LossSums sums = cross_entropy(logits, target, 0.1F, 1, gradient);
  EXPECT_EQ(sums.loss, 0.0);
  EXPECT_NEAR(gradient.to_vector()[0], 0.0F, 1e-7);
}

TEST(CrossEntropy, HugeLogitsDoNotOverflow) {
  for_each_instruction_set([] {
    const Tensor logits = Tensor::from({1e4F, -1e4F, 0, 1e30F, 0, -1e30F}, {2, 3});
    const Tensor gradient({2, 3}, DType::kFloat32);
    const std::vector<int32_t> targets = {0, 0};
    const LossSums sums = cross_entropy(logits, targets, 0, 1, gradient);
    EXPECT_EQ(sums.correct, 2);
    EXPECT_EQ(sums.nll, 0.0);
    for (const float value : gradient.to_vector()) EXPECT_EQ(value, 0.0F);
  });
}

// A loss that is not finite is seen (contract 15).
TEST(CrossEntropy, NotANumberShows) {
  for_each_instruction_set([] {
    for (const int64_t columns : {3, 40}) {
      for (const float bad : {kNan, kInfinity}) {
        for (const int64_t place : {int64_t{1}, columns - 1}) {
          const Tensor logits = random_tensor({1, columns}, 1);
          logits.data<float>()[place] = bad;
          const std::vector<int32_t> target = {0};
          EXPECT_FALSE(std::isfinite(cross_entropy(logits, target, 0.1F, 1, Tensor()).loss));
        }
      }
    }
  });
}

/// R-Drop's sums and gradients by their definition, in double: half of the paper's loss.
struct ExpectedPair {
  double divergence = 0;
  std::array<Expected, 2> of;
};

ExpectedPair expected_pair(const std::array<std::vector<float>, 2>& logits,
                           const std::vector<int32_t>& targets, double smoothing, double alpha,
                           double scale) {
  ExpectedPair result;
  std::array<std::vector<double>, 2> p;  // Σ p = 1: the gradient of no smoothing gives it
  for (std::size_t i = 0; i < 2; ++i) {
    result.of[i] = expected_loss(logits[i], targets, smoothing, scale / 2);
    p[i] = expected_loss(logits[i], targets, 0, 1).gradient;
    const std::size_t columns = logits[i].size() / targets.size();
    for (std::size_t row = 0; row < targets.size(); ++row) {
      p[i][row * columns + static_cast<std::size_t>(targets[row])] += 1;
    }
  }
  const std::size_t columns = logits[0].size() / targets.size();
  for (std::size_t begin = 0; begin < p[0].size(); begin += columns) {
    for (const std::size_t own : {0, 1}) {
      const double* mine = p[own].data() + begin;
      const double* other = p[1 - own].data() + begin;
      double kl = 0;
      for (std::size_t i = 0; i < columns; ++i) kl += mine[i] * std::log(mine[i] / other[i]);
      result.divergence += kl / 2;
      for (std::size_t i = 0; i < columns; ++i) {
        const double slope = mine[i] * (std::log(mine[i] / other[i]) - kl) + mine[i] - other[i];
        result.of[own].gradient[begin + i] += alpha / 4 * scale * slope;
      }
    }
  }
  return result;
}

TEST(RDropCrossEntropy, AgreesWithDoubles) {
  for (const int64_t columns : {2, 5, 16, 31, 32, 33, 1000}) {
    const std::vector<int32_t> targets = {0, 1, static_cast<int32_t>(columns - 1)};
    const Shape shape{3, columns};
    const std::array<Tensor, 2> logits = {random_tensor(shape, 3, DType::kFloat32, 2.0F),
                                          random_tensor(shape, 4, DType::kFloat32, 2.0F)};
    const std::array<std::vector<float>, 2> before = {logits[0].to_vector(), logits[1].to_vector()};
    const ExpectedPair expected = expected_pair(before, targets, 0.1, 5, 0.25);
    const double loss = (expected.of[0].loss + expected.of[1].loss) / 2;
    for_each_instruction_set([&] {
      for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
        for (const std::size_t i : {0, 1}) logits[i].assign(before[i]);
        const std::array<Tensor, 2> gradients = {Tensor(shape, dtype), Tensor(shape, dtype)};
        const LossSums sums = r_drop_cross_entropy(logits, targets, 0.1F, 5, 0.25F, gradients);
        EXPECT_NEAR(sums.loss, loss, 1e-6 * loss);
        EXPECT_NEAR(sums.nll, (expected.of[0].nll + expected.of[1].nll) / 2, 1e-6 * sums.nll);
        EXPECT_NEAR(sums.divergence, expected.divergence, 1e-5 * expected.divergence);
        EXPECT_EQ(sums.tokens, 3);
        EXPECT_EQ(sums.correct, expected.of[0].correct);
        for (const std::size_t i : {0, 1}) {
          EXPECT_LE(relative_error(gradients[i].to_vector(), expected.of[i].gradient),
                    dtype == DType::kFloat32 ? 1e-5 : 5e-3)
              << columns << " columns, pass " << i;
        }
      }
    });
  }
}

TEST(RDropCrossEntropy, OfTwoEqualPassesIsTheCrossEntropy) {
  const Shape shape{3, 40};
  const std::vector<int32_t> targets = {0, 39, 7};
  const auto fresh = [&] { return random_tensor(shape, 5); };
  const Tensor one(shape, DType::kFloat32);
  const LossSums expected = cross_entropy(fresh(), targets, 0.1F, 1, one);
  const std::array<Tensor, 2> gradients = {Tensor(shape, DType::kFloat32),
                                           Tensor(shape, DType::kFloat32)};
  const LossSums sums = r_drop_cross_entropy({fresh(), fresh()}, targets, 0.1F, 5, 1, gradients);
  EXPECT_EQ(sums.divergence, 0.0);
  EXPECT_NEAR(sums.loss, expected.loss, 1e-6 * expected.loss);
  std::vector<float> sum = gradients[0].to_vector();
  const std::vector<float> second = gradients[1].to_vector();
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += second[i];
  EXPECT_LE(relative_error(sum, one.to_vector()), 1e-6);
}

// Contract 15, and passes as far apart as float32 goes.
TEST(RDropCrossEntropy, NotANumberShowsAndHugeLogitsDoNotOverflow) {
  const std::vector<int32_t> target = {0};
  for_each_instruction_set([&] {
    const std::array<Tensor, 2> far = {Tensor::from({1e4F, -1e4F, 0}, {1, 3}),
                                       Tensor::from({-1e4F, 0, 1e4F}, {1, 3})};
    const std::array<Tensor, 2> gradients = {Tensor({1, 3}, DType::kFloat32),
                                             Tensor({1, 3}, DType::kFloat32)};
    EXPECT_NEAR(r_drop_cross_entropy(far, target, 0, 1, 1, gradients).divergence, 1.5e4, 1e-2);
    for (const Tensor& each : gradients) {
      for (const float value : each.to_vector()) EXPECT_TRUE(std::isfinite(value));
    }
    for (const std::size_t bad : {0, 1}) {
      const std::array<Tensor, 2> logits = {random_tensor({1, 40}, 1), random_tensor({1, 40}, 2)};
      logits[bad].data<float>()[33] = kNan;
      EXPECT_FALSE(std::isfinite(r_drop_cross_entropy(logits, target, 0.1F, 1, 1, {}).loss));
    }
  });
}

TEST(CrossEntropy, ARowDoesNotDependOnTheOthers) {
  const Tensor logits = random_tensor({5, 50}, 2);
  const std::vector<int32_t> targets = {1, 2, 3, 4, 5};
  const std::vector<float> before = logits.to_vector();
  const Tensor together({5, 50}, DType::kFloat32), alone({1, 50}, DType::kFloat32);
  cross_entropy(logits, targets, 0.1F, 1, together);
  logits.assign(before);
  cross_entropy(logits.slice_rows(3, 4), std::span(targets).subspan(3, 1), 0.1F, 1, alone);
  EXPECT_EQ(bits_of(alone), bits_of(together.slice_rows(3, 4)));
}

}  // namespace
}  // namespace attend::testing
