#include "attend/kernels/adam.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/fixture.h"
#include "tests/support/numbers.h"
#include "tests/support/targets.h"

namespace attend::testing {
namespace {

/// Buffers of `count` weights.
AdamStep make_step(const std::vector<float>& weights) {
  const Shape shape = {static_cast<int64_t>(weights.size())};
  AdamStep step;
  step.learning_rate = 0.01;
  step.weights = Tensor::from(weights, shape);
  step.gradient = Tensor::zeros(shape, DType::kFloat32);
  step.first_moment = Tensor::zeros(shape, DType::kFloat32);
  step.second_moment = Tensor::zeros(shape, DType::kFloat32);
  return step;
}

TEST(Adam, AgreesWithPyTorch) {
  const Fixture fixture("adam");
  for (const std::string name : {"adam", "adam with decay", "adamw"}) {
    const int64_t steps = fixture.shape(name + "/gradients")[0];
    const Tensor gradients = fixture.tensor(name + "/gradients");
    const Tensor after = fixture.tensor(name + "/after");
    for_each_instruction_set([&] {
      AdamStep op = make_step(fixture.values(name + "/weights"));
      op.weight_decay = name == "adam" ? 0 : 0.05;
      op.decoupled = name == "adamw";
      for (op.step = 1; op.step <= steps; ++op.step) {
        op.gradient.assign(gradients.slice_rows(op.step - 1, op.step).to_vector());
        adam_step(op, 0, op.weights.count());
        EXPECT_LE(relative_error(op.weights.to_vector(),
                                 after.slice_rows(op.step - 1, op.step).to_vector()),
                  1e-6)
            << name << ", step " << op.step;
      }
    });
  }
}

TEST(Adam, ThePartsMakeTheWhole) {
  constexpr int64_t kCount = 101;
  AdamStep whole = make_step(random_values(kCount, 1)), parts = make_step(random_values(kCount, 1));
  for (AdamStep* op : {&whole, &parts}) op->gradient.assign(random_values(kCount, 2));
  adam_step(whole, 0, kCount);
  adam_step(parts, 48, kCount);
  adam_step(parts, 0, 17);
  adam_step(parts, 17, 48);
  EXPECT_EQ(bits_of(whole.weights), bits_of(parts.weights));
  EXPECT_EQ(bits_of(whole.first_moment), bits_of(parts.first_moment));
  EXPECT_EQ(bits_of(whole.second_moment), bits_of(parts.second_moment));
}

TEST(Adam, LeavesWhatIsOutsideAlone) {
  AdamStep op = make_step(random_values(40, 1));
  op.gradient.assign(random_values(40, 2));
  const std::vector<float> weights = op.weights.to_vector(), gradient = op.gradient.to_vector();
  adam_step(op, 5, 23);
  for (std::size_t i = 0; i < 40; ++i) {
    const bool inside = i >= 5 && i < 23;
    EXPECT_EQ(op.weights.to_vector()[i] == weights[i], !inside) << i;
    EXPECT_EQ(op.gradient.to_vector()[i], inside ? 0.0F : gradient[i]) << i;
  }
}

TEST(Adam, ScalesTheGradientForClipping) {
  AdamStep scaled = make_step(random_values(20, 1)), small = make_step(random_values(20, 1));
  std::vector<float> gradient = random_values(20, 2);
  scaled.gradient_scale = 0.25;
  scaled.gradient.assign(gradient);
  for (float& value : gradient) value *= 0.25F;
  small.gradient.assign(gradient);
  adam_step(scaled, 0, 20);
  adam_step(small, 0, 20);
  EXPECT_EQ(scaled.first_moment.to_vector(), small.first_moment.to_vector());
  EXPECT_EQ(scaled.weights.to_vector(), small.weights.to_vector());
}

TEST(Adam, KeepsACopyAndAnAverage) {
  constexpr int64_t kCount = 35;
  for_each_instruction_set([] {
    AdamStep op = make_step(random_values(kCount, 1));
    op.compute_copy = Tensor::zeros({kCount}, DType::kBFloat16);
    op.average = Tensor::from(op.weights.to_vector(), {kCount});
    op.ema_decay = 0.9;
    std::vector<double> average;
    for (const float value : op.weights.to_vector()) average.push_back(static_cast<double>(value));
    for (op.step = 1; op.step <= 4; ++op.step) {
      op.gradient.assign(random_values(kCount, static_cast<uint64_t>(op.step)));
      adam_step(op, 0, kCount);
      const std::vector<float> weights = op.weights.to_vector();
      for (std::size_t i = 0; i < weights.size(); ++i) {
        average[i] = 0.9 * average[i] + 0.1 * static_cast<double>(weights[i]);
        EXPECT_EQ(op.compute_copy.data<BFloat16>()[i].bits, to_bfloat16(weights[i]).bits);
      }
      EXPECT_LE(relative_error(op.average.to_vector(), average), 1e-6);
    }
  });
}

TEST(Adam, NoGradientMeansNoStep) {
  AdamStep op = make_step(random_values(20, 1));
  const std::vector<float> before = op.weights.to_vector();
  adam_step(op, 0, 20);
  EXPECT_EQ(op.weights.to_vector(), before);
}

TEST(SumOfSquares, AgreesWithDoubles) {
  for (const int64_t count : {1, 17, 4096, 10007}) {
    const Tensor flat = random_tensor({count}, 3);
    double expected = 0;
    for (const float value : flat.to_vector()) {
      expected += static_cast<double>(value) * static_cast<double>(value);
    }
    for_each_instruction_set(
        [&] { EXPECT_NEAR(sum_of_squares(flat, 0, count), expected, 1e-6 * expected); });
  }
  EXPECT_EQ(sum_of_squares(random_tensor({10}, 1), 4, 4), 0.0);
}

// Contract 15: what is not finite is seen wherever it stands.
TEST(SumOfSquares, ShowsWhatIsNotFinite) {
  for_each_instruction_set([] {
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      for (const int64_t place : {0, 15, 4095, 4100, 5002}) {
        const Tensor flat = random_tensor({5003}, 3);
        flat.data<float>()[place] = bad;
        EXPECT_FALSE(std::isfinite(sum_of_squares(flat, 0, 5003)));
      }
    }
  });
}

}  // namespace
}  // namespace attend::testing
