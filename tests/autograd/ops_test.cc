// What ops promise beside their gradients.
#include <gtest/gtest.h>

#include "tests/autograd/op_harness.h"

namespace attend::testing {
namespace {

/// One self-attention head of width 1 over rows of (query, key, value).
std::vector<float> attend_rows(const std::vector<float>& rows, bool causal) {
  Context context;
  AttentionSettings settings;
  settings.key_width = settings.value_width = 1;
  settings.causal = causal;
  const auto count = static_cast<int64_t>(rows.size() / 3);
  settings.query_offsets = settings.key_offsets = share({0, count});
  const Variable qkv(Tensor::from(rows, {count, 3}), DType::kFloat32);
  return self_attention(context, settings, qkv).value().to_vector();
}

// d_k = 1, a query 1, keys ln 3 and 0, values 2 and 6: weights 3/4 and 1/4, output 3; with the
// second key masked, 2.
TEST(Attention, WorkedExample) {
  const float ln3 = std::log(3.0F);
  const std::vector<float> seen = attend_rows({1, ln3, 2, 1, 0, 6}, false);
  EXPECT_NEAR(seen[0], 3.0F, 1e-6);
  EXPECT_NEAR(seen[1], 3.0F, 1e-6);
  const std::vector<float> masked = attend_rows({1, ln3, 2, 1, 0, 6}, true);
  EXPECT_EQ(masked[0], 2.0F);
  EXPECT_NEAR(masked[1], 3.0F, 1e-6);
}

TEST(Attention, WorkedExampleAcrossStacks) {
  Context context;
  AttentionSettings settings;
  settings.key_width = settings.value_width = 1;
  settings.query_offsets = share({0, 1});
  settings.key_offsets = share({0, 2});
  const Variable q(Tensor::from({1}, {1, 1}), DType::kFloat32);
  const Variable kv(Tensor::from({std::log(3.0F), 2, 0, 6}, {2, 2}), DType::kFloat32);
  const Variable out = cross_attention(context, settings, q, kv);
  EXPECT_NEAR(out.value().to_vector()[0], 3.0F, 1e-6);
}

TEST(Attention, AddingAConstantToAllScoresChangesNothing) {
  // A key bias adds q·b to every score of a row.
  const std::vector<float> plain = attend_rows({2, 0.5F, 2, 1, -1, 6, 3, 0.2F, 1}, false);
  const std::vector<float> moved = attend_rows({2, 1.5F, 2, 1, 0, 6, 3, 1.2F, 1}, false);
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(plain[i], moved[i], 1e-5);
}

TEST(Rotate, ProductsDependOnTheDistanceAlone) {
  constexpr int64_t kWidth = 16;
  const auto product = [&](int32_t query_place, int32_t key_place) {
    Context context;
    const Tensor both = random_tensor({2, kWidth}, 5);
    const auto places =
        std::make_shared<const std::vector<int32_t>>(std::vector<int32_t>{query_place, key_place});
    rotate(context, Variable(both, DType::kFloat32), places, kWidth, 1);
    const std::vector<float> turned = both.to_vector();
    double sum = 0;
    for (int64_t i = 0; i < kWidth; ++i) {
      sum += static_cast<double>(turned[static_cast<std::size_t>(i)]) *
             static_cast<double>(turned[static_cast<std::size_t>(kWidth + i)]);
    }
    return sum;
  };
  for (const int32_t distance : {0, 1, 7, 50}) {
    const double expected = product(distance, 0);
    for (const int32_t place : {1, 13, 400}) {
      EXPECT_NEAR(product(place + distance, place), expected, 1e-3) << place << " " << distance;
    }
  }
  EXPECT_GT(std::abs(product(1, 0) - product(2, 0)), 1e-2);
}

TEST(Embedding, RefusesWhatIsOutsideItsTables) {
  ParameterSet set;
  Parameter& table = set.add("table", {5, 4}, constant(1));
  Parameter& positions = set.add("positions", {3, 4}, constant(1));
  set.allocate(DType::kFloat32, false);
  Context context;
  const auto embed = [&](std::vector<int32_t> ids, std::vector<int64_t> first) {
    const auto count = static_cast<int64_t>(ids.size());
    embedding(context, {std::move(ids), share({0, count}), std::move(first)}, table, 1, Tensor(),
              &positions, 0, false);
  };
  EXPECT_NO_THROW(embed({0, 4, 0}, {}));
  EXPECT_NO_THROW(embed({0}, {2}));
  EXPECT_THROW(embed({5}, {}), Error);
  EXPECT_THROW(embed({-1}, {}), Error);
  EXPECT_THROW(embed({0, 1, 2, 3}, {}), Error);
  EXPECT_THROW(embed({0, 1}, {2}), Error);
}

/// Loss and gradients of project_cross_entropy on some rows of one hidden tensor.
struct Projection {
  LossSums sums;
  Tensor d_hidden;
};
Projection project(ParameterSet& set, const Tensor& hidden, std::span<const int32_t> targets,
                   float r_drop = 0) {
  Tape tape;
  Context context;
  context.tape = &tape;
  const Variable variable(hidden, DType::kFloat32);
  set.begin_step(1);
  Projection result;
  result.sums =
      project_cross_entropy(context, variable, set.find("table"), targets, 0.1F, 0.5F, r_drop);
  tape.finish(set);
  result.d_hidden = variable.gradient();
  return result;
}

/// Rows [first, last) of each of the copies that lie end to end in `all`.
Tensor rows_of_copies(const Tensor& all, int64_t copies, int64_t first, int64_t last) {
  std::vector<float> values;
  const int64_t rows = all.rows() / copies;
  for (int64_t copy = 0; copy < copies; ++copy) {
    const auto part = all.slice_rows(copy * rows + first, copy * rows + last).to_vector();
    values.insert(values.end(), part.begin(), part.end());
  }
  return Tensor::from(values, {copies * (last - first), all.columns()});
}

// So many classes that the gradient of the logits is made in two blocks of rows.
TEST(ProjectCrossEntropy, BlocksOfRowsAddUp) {
  constexpr int64_t kClasses = 200000, kWidth = 3;
  ParameterSet set;
  Parameter& table = set.add("table", {kClasses, kWidth}, normal(1));
  set.allocate(DType::kFloat32, true);
  set.initialize(3);
  const Tensor hidden = random_tensor({200, kWidth}, 4);
  for (const auto& [copies, r_drop] : {std::pair(1, 0.0F), {2, 3.0F}}) {
    const int64_t rows = 200 / copies, first_rows = 128 / copies;
    std::vector<int32_t> targets;
    for (int32_t row = 0; row < rows; ++row) targets.push_back(row * 997);
    const std::span<const int32_t> all(targets);
    const auto of_both = [&](const Tensor& from, int64_t first, int64_t last) {
      return rows_of_copies(from, copies, first, last);
    };

    table.gradient.zero();
    const Projection whole = project(set, hidden, all, r_drop);
    const std::vector<float> whole_gradient = table.gradient.to_vector();
    table.gradient.zero();
    const auto cut = static_cast<std::size_t>(first_rows);
    const Projection first =
        project(set, of_both(hidden, 0, first_rows), all.subspan(0, cut), r_drop);
    const Projection second =
        project(set, of_both(hidden, first_rows, rows), all.subspan(cut), r_drop);

    EXPECT_NEAR(whole.sums.loss, first.sums.loss + second.sums.loss, 1e-9 * whole.sums.loss);
    EXPECT_NEAR(whole.sums.divergence, first.sums.divergence + second.sums.divergence,
                1e-9 * whole.sums.divergence);
    EXPECT_EQ(bits_of(of_both(whole.d_hidden, 0, first_rows)), bits_of(first.d_hidden));
    EXPECT_EQ(bits_of(of_both(whole.d_hidden, first_rows, rows)), bits_of(second.d_hidden));
    EXPECT_LE(relative_error(table.gradient.to_vector(), whole_gradient), 1e-6);
  }
}

TEST(ProjectCrossEntropy, NoRowsCostNothing) {
  ParameterSet set;
  set.add("table", {4, 3}, normal(1));
  set.allocate(DType::kFloat32, true);
  set.initialize(3);
  const Projection none = project(set, Tensor({0, 3}, DType::kFloat32), {});
  EXPECT_EQ(none.sums.tokens, 0);
  EXPECT_EQ(none.sums.loss, 0.0);
}

TEST(ProjectCrossEntropy, CountsWhatIsRight) {
  ParameterSet set;
  Parameter& table = set.add("table", {3, 3}, constant(0));
  set.allocate(DType::kFloat32, false);
  table.master.assign({1, 0, 0, 0, 1, 0, 0, 0, 1});
  Context context;
  const Variable hidden(Tensor::from({9, 0, 0, 0, 9, 0, 0, 0, 9}, {3, 3}), DType::kFloat32);
  const std::vector<int32_t> targets = {0, 1, 0};
  const LossSums sums = project_cross_entropy(context, hidden, table, targets, 0, 1);
  EXPECT_EQ(sums.correct, 2);
  EXPECT_EQ(sums.tokens, 3);
  EXPECT_EQ(sums.loss, sums.nll);
}

}  // namespace
}  // namespace attend::testing
