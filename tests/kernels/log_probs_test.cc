#include "attend/kernels/log_probs.h"

#include <cmath>

#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "tests/support/numbers.h"

namespace attend::testing {
namespace {

std::vector<double> softmax(const std::vector<float>& logits) {
  double sum = 0;
  std::vector<double> probabilities;
  for (const float logit : logits) {
    probabilities.push_back(std::exp(static_cast<double>(logit)));
    sum += probabilities.back();
  }
  for (double& each : probabilities) each /= sum;
  return probabilities;
}

TEST(MeanLogProbs, AgreesWithAPlainMean) {
  for (const int64_t columns : {1, 5, 16, 33, 100}) {
    for (const std::size_t models : {1, 2, 3}) {
      std::vector<Tensor> logits;
      std::vector<std::vector<double>> expected(
          4, std::vector<double>(static_cast<std::size_t>(columns), 0.0));
      for (std::size_t m = 0; m < models; ++m) {
        logits.push_back(Tensor::from(random_values(4 * columns, 7 + m, 5.0F), {4, columns}));
        for (int64_t row = 0; row < 4; ++row) {
          const auto each = softmax(logits[m].slice_rows(row, row + 1).to_vector());
          for (std::size_t i = 0; i < each.size(); ++i) {
            expected[static_cast<std::size_t>(row)][i] += each[i] / static_cast<double>(models);
          }
        }
      }
      mean_log_probs(logits);
      for (int64_t row = 0; row < 4; ++row) {
        const std::vector<float> found = logits[0].slice_rows(row, row + 1).to_vector();
        for (std::size_t i = 0; i < found.size(); ++i) {
          EXPECT_NEAR(found[i], std::log(expected[static_cast<std::size_t>(row)][i]), 2e-5);
        }
      }
    }
  }
}

TEST(MeanLogProbs, LosesNothingToUnderflowAndStaysFinite) {
  std::vector<Tensor> logits = {Tensor::from({0, -300, -1000}, {1, 3}),
                                Tensor::from({0, -200, -1000}, {1, 3})};
  mean_log_probs(logits);
  const std::vector<float> found = logits[0].to_vector();
  EXPECT_NEAR(found[0], 0, 1e-6);
  EXPECT_NEAR(found[1], -200 - std::log(2.0), 1e-4);
  EXPECT_NEAR(found[2], -1000, 1e-3);
}

TEST(MeanLogProbs, ARowWithAScoreThatIsNoNumberHasNone) {
  for (const float bad : {NAN, INFINITY}) {
    std::vector<Tensor> logits = {Tensor::from({1, bad, 3, 0, 0, 0}, {2, 3}),
                                  Tensor::from({0, 0, 0, 1, 2, 3}, {2, 3})};
    mean_log_probs(logits);
    const std::vector<float> found = logits[0].to_vector();
    for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(found[i]));
    for (std::size_t i = 3; i < 6; ++i) EXPECT_TRUE(std::isfinite(found[i]));
  }
}

TEST(MeanLogProbs, RefusesModelsOfDifferentSizes) {
  const std::vector<Tensor> logits = {Tensor::zeros({2, 3}, DType::kFloat32),
                                      Tensor::zeros({2, 4}, DType::kFloat32)};
  EXPECT_THROW(mean_log_probs(logits), Error);
}

TEST(MeanOf, IsTheMeanInThePlaceOfTheFirst) {
  const std::vector<Tensor> tensors = {Tensor::from(random_values(34, 1), {2, 17}),
                                       Tensor::from(random_values(34, 2), {2, 17})};
  const std::vector<float> first = tensors[0].to_vector(), second = tensors[1].to_vector();
  mean_of(tensors);
  const std::vector<float> found = tensors[0].to_vector();
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_FLOAT_EQ(found[i], (first[i] + second[i]) / 2);
  }
}

}  // namespace
}  // namespace attend::testing
