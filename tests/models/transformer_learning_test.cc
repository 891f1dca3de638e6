// A copy task and a reverse task, learned until every unseen sentence comes out right.
#include <gtest/gtest.h>

#include <algorithm>

#include "attend/kernels/adam.h"
#include "attend/kernels/gemm.h"
#include "tests/support/models.h"

namespace attend::testing {
namespace {

constexpr int32_t kBegin = 0, kEnd = 1, kFirstSymbol = 2;
constexpr int64_t kVocabulary = 12, kLongest = 8;

/// What the model is to make of a sentence of symbols.
using Task = std::vector<int32_t> (*)(std::vector<int32_t>);

std::vector<int32_t> copied(std::vector<int32_t> symbols) { return symbols; }
std::vector<int32_t> reversed(std::vector<int32_t> symbols) {
  std::reverse(symbols.begin(), symbols.end());
  return symbols;
}

Sentences random_symbols(int64_t count, uint64_t seed) {
  Sentences sentences = random_sentences(count, kLongest, kVocabulary - kFirstSymbol, seed);
  for (auto& sentence : sentences) {
    for (int32_t& symbol : sentence) symbol += kFirstSymbol;
  }
  return sentences;
}

std::vector<int32_t> with_end(std::vector<int32_t> sentence) {
  sentence.push_back(kEnd);
  return sentence;
}
std::vector<int32_t> after_begin(std::vector<int32_t> sentence) {
  sentence.insert(sentence.begin(), kBegin);
  return sentence;
}

TransformerConfig tiny_config(NormPlacement norm) {
  TransformerConfig config;
  config.source_vocabulary_size = config.target_vocabulary_size = kVocabulary;
  config.encoder_layers = config.decoder_layers = 2;
  config.d_model = 32;
  config.d_ff = 64;
  config.heads = 4;
  config.dropout = 0;
  config.max_length = 16;
  config.norm = norm;
  return config;
}

/// Adam by hand: the rate rises for a tenth of the steps and falls linearly to 0.
class Trainer {
 public:
  explicit Trainer(Transformer& model) : model_(model) {
    const ParameterSet& parameters = model.parameters();
    adam_.weights = parameters.flat_master();
    adam_.gradient = parameters.flat_gradient();
    adam_.compute_copy = parameters.flat_compute();
    adam_.first_moment = Tensor::zeros({parameters.flat_size()}, DType::kFloat32);
    adam_.second_moment = Tensor::zeros({parameters.flat_size()}, DType::kFloat32);
  }

  void train(Task task, int64_t steps, int64_t sentences, double rate) {
    for (adam_.step = 1; adam_.step <= steps; ++adam_.step) {
      const double done = static_cast<double>(adam_.step) / static_cast<double>(steps);
      adam_.learning_rate = rate * std::min(10 * done, (1 - done) / 0.9);
      run_step(task, random_symbols(sentences, static_cast<uint64_t>(adam_.step) + 1000));
      adam_step(adam_, 0, adam_.weights.count());
    }
  }

 private:
  void run_step(Task task, const Sentences& symbols) {
    Sentences source, input, output;
    for (const auto& sentence : symbols) {
      source.push_back(with_end(sentence));
      input.push_back(after_begin(task(sentence)));
      output.push_back(with_end(task(sentence)));
    }
    const TokenBatch targets = batch_of(output);
    Tape tape;
    Context context = context_for(model_);
    context.tape = &tape;
    context.memory = &memory_;
    context.training = true;
    ParameterSet& parameters = model_.parameters();
    parameters.begin_step(1);
    model_.loss(context, batch_of(source), batch_of(input), targets.tokens,
                1.0F / static_cast<float>(targets.tokens.size()));
    parameters.add_sparse_gradients(0, 1);
  }

  Transformer& model_;
  MemoryPool memory_;
  AdamStep adam_;
};

/// Greedy decoding with caches, all sentences at once, until each has ended.
Sentences translate(const Transformer& model, const Sentences& symbols) {
  Sentences source;
  std::vector<int64_t> rows;
  std::vector<std::size_t> parents;
  for (const auto& sentence : symbols) {
    rows.push_back(static_cast<int64_t>(source.size()));
    parents.push_back(source.size());
    source.push_back(with_end(sentence));
  }
  StepDecoder decoder(model, source, rows);
  std::vector<int32_t> tokens(symbols.size(), kBegin);
  Sentences output(symbols.size());
  std::vector<bool> ended(symbols.size(), false);
  for (int64_t length = 0; length <= kLongest; ++length) {
    tokens = top_scores(decoder.logits(decoder.step(tokens, parents)), 1).indices;
    for (std::size_t row = 0; row < tokens.size(); ++row) {
      if (tokens[row] == kEnd) ended[row] = true;
      if (!ended[row]) output[row].push_back(tokens[row]);
    }
  }
  return output;
}

int64_t count_right(const Transformer& model, Task task, const Sentences& symbols) {
  const Sentences output = translate(model, symbols);
  int64_t right = 0;
  for (std::size_t i = 0; i < symbols.size(); ++i) right += output[i] == task(symbols[i]) ? 1 : 0;
  return right;
}

void expect_learned(Task task, NormPlacement norm, DType dtype) {
  Transformer model(tiny_config(norm), dtype, true);
  model.initialize(1);
  const Sentences unseen = random_symbols(200, 999);
  EXPECT_LT(count_right(model, task, unseen), 20);
  Trainer(model).train(task, 700, 48, 4e-3);
  EXPECT_EQ(count_right(model, task, unseen), 200);
}

TEST(Learning, Copy) { expect_learned(copied, NormPlacement::kPost, DType::kFloat32); }
TEST(Learning, Reverse) { expect_learned(reversed, NormPlacement::kPre, DType::kFloat32); }

TEST(Learning, ReverseInBfloat16) {
  if (!has_bfloat16_arithmetic()) GTEST_SKIP() << "this CPU has no bfloat16 arithmetic";
  expect_learned(reversed, NormPlacement::kPost, DType::kBFloat16);
}

TEST(Learning, IsTheSameEveryTime) {
  const auto train = [] {
    Transformer model(tiny_config(NormPlacement::kPost), DType::kFloat32, true);
    model.initialize(1);
    Trainer(model).train(copied, 20, 16, 4e-3);
    return bits_of(model.parameters().flat_master());
  };
  EXPECT_EQ(train(), train());
}

}  // namespace
}  // namespace attend::testing
