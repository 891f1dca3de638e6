// Decoding a token at a time over caches against decoding whole prefixes.
#include <gtest/gtest.h>

#include "tests/support/models.h"

namespace attend::testing {
namespace {

const Sentences kSource = {{3, 1, 4, 1, 5}, {9}, {2, 6, 5}};

template <typename Test>
void for_each_model(const Test& test) {
  for (const auto& [name, config] : kinds_of_model()) {
    for (const DType dtype : compute_dtypes()) {
      SCOPED_TRACE(name + ", " + std::string(name_of(dtype)));
      Transformer model(config, dtype, false);
      fill_weights(model, 9);
      test(model);
    }
  }
}

/// The last row of each sentence.
std::vector<float> last_rows(const Tensor& hidden, const Sentences& sentences) {
  std::vector<float> values;
  const TokenBatch batch = batch_of(sentences);
  for (const int64_t end : *batch.offsets) {
    if (end == 0) continue;
    const std::vector<float> row = hidden.slice_rows(end - 1, end).to_vector();
    values.insert(values.end(), row.begin(), row.end());
  }
  return values;
}

TEST(DecodeStep, AgreesWithWholePrefixes) {
  for_each_model([](const Transformer& model) {
    const Sentences target = {{1, 2, 3, 4, 5, 6}, {7, 7, 8, 9, 1, 3}, {18, 0, 0, 4, 2, 2}};
    StepDecoder decoder(model, kSource, {0, 1, 2});
    Sentences prefixes(3);
    for (std::size_t i = 0; i < 6; ++i) {
      std::vector<int32_t> tokens;
      for (std::size_t row = 0; row < 3; ++row) {
        tokens.push_back(target[row][i]);
        prefixes[row].push_back(target[row][i]);
      }
      const Tensor hidden = decoder.step(tokens, {0, 1, 2});
      EXPECT_LE(relative_error(hidden.to_vector(),
                               last_rows(hidden_states(model, kSource, prefixes), prefixes)),
                model.compute() == DType::kFloat32 ? 3e-6 : 2e-2)
          << "token " << i;
    }
  });
}

// Rows go on from one another, as the hypotheses of a beam do; several rows share a sentence.
TEST(DecodeStep, FollowsTheAncestorsOfEachRow) {
  for_each_model([](const Transformer& model) {
    const std::vector<int64_t> sentence_of_row = {0, 0, 0, 2, 2};
    const Sentences source = {kSource[0], kSource[0], kSource[0], kSource[2], kSource[2]};
    StepDecoder decoder(model, kSource, sentence_of_row);
    RandomGenerator random(4);
    Sentences prefixes(5);
    for (int step = 0; step < 7; ++step) {
      std::vector<int32_t> tokens;
      std::vector<std::size_t> parents;
      Sentences grown;
      for (std::size_t row = 0; row < 5; ++row) {
        parents.push_back(row < 3 ? random.uniform_index(3) : 3 + random.uniform_index(2));
        tokens.push_back(static_cast<int32_t>(random.uniform_index(19)));
        grown.push_back(prefixes[parents.back()]);
        grown.back().push_back(tokens.back());
      }
      prefixes = grown;
      const Tensor hidden = decoder.step(tokens, parents);
      EXPECT_LE(relative_error(hidden.to_vector(),
                               last_rows(hidden_states(model, source, prefixes), prefixes)),
                model.compute() == DType::kFloat32 ? 3e-6 : 2e-2)
          << "step " << step;
    }
  });
}

// Contract 6: the same bits whoever else is being decoded.
TEST(DecodeStep, ARowDoesNotDependOnTheOthers) {
  for_each_model([](const Transformer& model) {
    StepDecoder together(model, kSource, {0, 1, 2, 2, 0, 1, 1, 2, 0});
    StepDecoder alone(model, {kSource[2]}, {0});
    StepDecoder in_pair(model, {kSource[2], kSource[1]}, {1, 0});
    for (int32_t step = 0; step < 5; ++step) {
      const int32_t own = 3 * step + 1, other = 2 * step;
      const Tensor all = together.step({other, other, own, other, own, own, other, other, own},
                                       {0, 1, 2, 3, 4, 5, 6, 7, 8});
      const Tensor one = alone.step({own}, {0}), two = in_pair.step({other, own}, {0, 1});
      EXPECT_EQ(bits_of(one), bits_of(all.slice_rows(2, 3)));
      EXPECT_EQ(bits_of(one), bits_of(two.slice_rows(1, 2)));
      EXPECT_EQ(bits_of(alone.logits(one)), bits_of(together.logits(all).slice_rows(2, 3)));
    }
  });
}

}  // namespace
}  // namespace attend::testing
