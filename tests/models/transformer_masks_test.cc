// Masks proven by perturbation, and that a sentence's result belongs to the sentence (contract 6).
#include <gtest/gtest.h>

#include "tests/support/models.h"

namespace attend::testing {
namespace {

/// Runs `test` for every kind of model in every dtype.
template <typename Test>
void for_each_model(const Test& test) {
  for (const auto& [name, config] : kinds_of_model()) {
    for (const DType dtype : compute_dtypes()) {
      SCOPED_TRACE(name + ", " + std::string(name_of(dtype)));
      Transformer model(config, dtype, false);
      fill_weights(model, 7);
      test(model);
    }
  }
}

std::vector<uint32_t> rows_of(const Tensor& tensor, int64_t first, int64_t last) {
  return bits_of(tensor.slice_rows(first, last));
}

TEST(Masks, AFutureTokenChangesNothingEarlier) {
  for_each_model([](const Transformer& model) {
    const Sentences source = {{3, 1, 4, 1, 5, 9, 2, 6}};
    const std::vector<int32_t> target = {2, 7, 1, 8, 2, 8, 1, 8, 2, 8};
    const Tensor before = hidden_states(model, source, {target});
    for (std::size_t changed = 0; changed < target.size(); ++changed) {
      std::vector<int32_t> other = target;
      other[changed] = (other[changed] + 5) % 19;
      const Tensor after = hidden_states(model, source, {other});
      const auto place = static_cast<int64_t>(changed);
      EXPECT_EQ(rows_of(before, 0, place), rows_of(after, 0, place)) << changed;
      for (int64_t row = place; row < before.rows(); ++row) {
        EXPECT_NE(rows_of(before, row, row + 1), rows_of(after, row, row + 1))
            << "row " << row << " should see token " << changed;
      }
    }
  });
}

TEST(Masks, LaterTokensNeedNotBeThere) {
  for_each_model([](const Transformer& model) {
    const Sentences source = {{3, 1, 4}};
    const std::vector<int32_t> target = {2, 7, 1, 8, 2, 8};
    const Tensor whole = hidden_states(model, source, {target});
    for (std::size_t length = 1; length < target.size(); ++length) {
      const Tensor prefix = hidden_states(
          model, source, {{target.begin(), target.begin() + static_cast<long>(length)}});
      EXPECT_EQ(bits_of(prefix), rows_of(whole, 0, static_cast<int64_t>(length)));
    }
  });
}

TEST(Masks, ASourceTokenChangesEverything) {
  for_each_model([](const Transformer& model) {
    const std::vector<int32_t> source = {3, 1, 4, 1, 5};
    const Tensor before = hidden_states(model, {source}, {{2, 7, 1}});
    for (std::size_t changed = 0; changed < source.size(); ++changed) {
      std::vector<int32_t> other = source;
      other[changed] = 17;
      const Tensor after = hidden_states(model, {other}, {{2, 7, 1}});
      for (int64_t row = 0; row < 3; ++row) {
        EXPECT_NE(rows_of(before, row, row + 1), rows_of(after, row, row + 1));
      }
    }
  });
}

TEST(Masks, OneSentenceChangesNoOther) {
  for_each_model([](const Transformer& model) {
    const Sentences source = random_sentences(6, 9, 19, 1), target = random_sentences(6, 9, 19, 2);
    const std::vector<int64_t> offsets = *batch_of(target).offsets;
    const Tensor before = hidden_states(model, source, target);
    for (std::size_t changed = 0; changed < source.size(); ++changed) {
      Sentences other_source = source, other_target = target;
      for (int32_t& token : other_source[changed]) token = (token + 3) % 19;
      for (int32_t& token : other_target[changed]) token = (token + 3) % 19;
      const Tensor after = hidden_states(model, other_source, other_target);
      for (std::size_t i = 0; i < source.size(); ++i) {
        const bool same = rows_of(before, offsets[i], offsets[i + 1]) ==
                          rows_of(after, offsets[i], offsets[i + 1]);
        EXPECT_EQ(same, i != changed) << "sentence " << i << " after a change of " << changed;
      }
    }
  });
}

// The same bits alone as in any batch: rows come to 1, 2, 7, 64 and more.
TEST(Masks, ASentenceIsTheSameInAnyCompany) {
  for_each_model([](const Transformer& model) {
    Sentences source = random_sentences(64, 7, 19, 3), target = random_sentences(64, 7, 19, 4);
    source[0] = {5};
    target[0] = {6};  // one row alone
    source[5] = {5, 8};
    target[5] = {6, 9};
    const Tensor all = hidden_states(model, source, target);
    const std::vector<int64_t> offsets = *batch_of(target).offsets;
    for (const std::size_t count : {1, 2, 7, 40}) {
      for (const std::size_t first : {0, 5, 24}) {
        const auto begin = static_cast<long>(first), end = static_cast<long>(first + count);
        const Tensor some = hidden_states(model, {source.begin() + begin, source.begin() + end},
                                          {target.begin() + begin, target.begin() + end});
        EXPECT_EQ(bits_of(some), rows_of(all, offsets[first], offsets[first + count]))
            << count << " sentences from " << first;
      }
    }
  });
}

TEST(Masks, LogitsAreTheSameInAnyCompany) {
  for_each_model([](const Transformer& model) {
    const Sentences source = random_sentences(9, 7, 19, 3), target = random_sentences(9, 7, 19, 4);
    Context context = context_for(model);
    const Tensor hidden = hidden_states(model, source, target);
    const Tensor all = model.logits(context, Variable(hidden, hidden.dtype()));
    for (int64_t row = 0; row < hidden.rows(); ++row) {
      const Tensor one = hidden.slice_rows(row, row + 1);
      EXPECT_EQ(bits_of(model.logits(context, Variable(one, one.dtype()))),
                rows_of(all, row, row + 1));
    }
  });
}

TEST(Masks, InputsLongerThanAnyInTrainingWork) {
  for_each_model([](const Transformer& model) {
    const int64_t longest = model.config().max_length;
    Sentences source(1), target(1);
    for (int64_t i = 0; i < longest; ++i) {
      source[0].push_back(static_cast<int32_t>(i % 19));
      target[0].push_back(static_cast<int32_t>(i * 7 % 19));
    }
    const Tensor whole = hidden_states(model, source, target);
    for (const float value : whole.to_vector()) ASSERT_TRUE(std::isfinite(value));
    const Tensor short_target = hidden_states(model, source, {{target[0][0], target[0][1]}});
    EXPECT_EQ(bits_of(short_target), rows_of(whole, 0, 2));
  });
}

}  // namespace
}  // namespace attend::testing
