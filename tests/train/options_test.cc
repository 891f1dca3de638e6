#include "attend/train/options.h"

#include <functional>

#include <gtest/gtest.h>

#include "attend/base/error.h"

namespace attend {
namespace {

TEST(TrainLimit, ParsesEveryUnit) {
  EXPECT_EQ(parse_train_limit("10e").epochs, 10.0);
  EXPECT_EQ(parse_train_limit("0.5e").epochs, 0.5);
  EXPECT_EQ(parse_train_limit("5Ku").updates, 5000);
  EXPECT_EQ(parse_train_limit("1.5Ku").updates, 1500);
  EXPECT_EQ(parse_train_limit("2Gt").tokens, 2'000'000'000);
  EXPECT_EQ(parse_train_limit("45s").seconds, 45.0);
  EXPECT_EQ(parse_train_limit("30m").seconds, 1800.0);
  EXPECT_EQ(parse_train_limit("2h").seconds, 7200.0);
  EXPECT_EQ(parse_train_limit("none"), TrainLimit{});
}

TEST(TrainLimit, RefusesWhatIsNotOne) {
  for (const char* text : {"", "u", "10", "10x", "-3e", "0u", "1.5u", "5Ke", "5K", "10 e", "10ee",
                           "infs", "nane", "1e400e", "99999999999Gu", "None"}) {
    EXPECT_THROW(parse_train_limit(text), UsageError) << text;
  }
}

TEST(TrainLimit, IsWrittenAsItIsRead) {
  for (const char* text : {"none", "10e", "0.25e", "5Ku", "1501u", "2Gt", "3Mt", "90.5s"}) {
    EXPECT_EQ(to_string(parse_train_limit(text)), text);
  }
  EXPECT_EQ(to_string(parse_train_limit("2h")), "7200s");
}

/// What is wrong with a text that `parse` refuses.
template <typename Parse>
std::string refusal(const Parse& parse, const char* text) {
  try {
    parse(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Amounts, ErrorsSayWhatIsWrong) {
  const std::pair<const char*, const char*> limits[] = {
      {"0u", "\"0u\", which is nothing; expected more than 0, or none"},
      {"0e", "which is nothing"},
      {"99999999999Gu", "which is too large: at most 9007199254740992"},
      {"1.5u", "which is no whole number"},
      {"5Ke", "K, M and G go with u and t alone"},
      {"10x", "expected an amount such as 10e"}};
  for (const auto& [text, part] : limits) {
    EXPECT_NE(refusal(parse_train_limit, text).find(part), std::string::npos) << text;
  }
  const std::pair<const char*, const char*> counts[] = {
      {"9223372036854775808", "which is too large: at most 9223372036854775807"},
      {"99999999999G", "which is too large"},
      {"1.2345K", "which is no whole number"},
      {"4k", "expected a whole number, such as"}};
  for (const auto& [text, part] : counts) {
    EXPECT_NE(refusal(parse_count, text).find(part), std::string::npos) << text;
  }
  const std::pair<const char*, const char*> sizes[] = {
      {"0", "which is nothing; expected more than 0, or none"},
      {"99999999999G", "which is too large"},
      {"1.5", "which is no whole number"}};
  for (const auto& [text, part] : sizes) {
    EXPECT_NE(refusal(parse_memory_limit, text).find(part), std::string::npos) << text;
  }
}

TEST(Count, TakesSuffixesAndAll64Bits) {
  EXPECT_EQ(parse_count("4096"), 4096);
  EXPECT_EQ(parse_count("4K"), 4000);
  EXPECT_EQ(parse_count("1.5M"), 1'500'000);
  EXPECT_EQ(parse_count("3G"), 3'000'000'000);
  EXPECT_EQ(parse_count("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(parse_count("-1"), -1);
  for (const char* text : {"", "K", "4k", "1.5", "4KK", "0x10", " 4", "9223372036854775808",
                           "1.2345K", "99999999999G"}) {
    EXPECT_THROW(parse_count(text), UsageError) << text;
  }
}

TEST(MemoryLimit, IsWrittenAsItIsRead) {
  EXPECT_EQ(parse_memory_limit("4G").bytes, int64_t{4} << 30);
  EXPECT_EQ(parse_memory_limit("1.5G").bytes, int64_t{3} << 29);
  EXPECT_EQ(parse_memory_limit("512M").bytes, int64_t{1} << 29);
  EXPECT_EQ(parse_memory_limit("1000").bytes, 1000);
  EXPECT_EQ(parse_memory_limit("none").bytes, 0);
  for (const char* text : {"none", "4G", "1536M", "7K", "1001"}) {
    EXPECT_EQ(to_string(parse_memory_limit(text)), text);
  }
  for (const char* text : {"", "0", "-1", "G", "4g", "4GB", "1.5", "1e3", "nan", "99999999999G"}) {
    EXPECT_THROW(parse_memory_limit(text), UsageError) << text;
  }
}

TEST(Names, AreReadAsTheyAreWritten) {
  for (const char* name : {"auto", "float32", "bfloat16"}) {
    EXPECT_EQ(name_of(parse_precision(name)), name);
  }
  for (const char* name : {"adam", "adamw"}) EXPECT_EQ(name_of(parse_optimizer(name)), name);
  for (const char* name : {"paper", "inverse_sqrt", "linear", "constant"}) {
    EXPECT_EQ(name_of(parse_schedule(name)), name);
  }
  for (const char* name : {"loss", "perplexity", "bleu", "chrf"}) {
    EXPECT_EQ(name_of(parse_validation_metric(name)), name);
  }
}

TEST(Names, ErrorsListWhatThereIs) {
  try {
    parse_schedule("cosine");
    FAIL() << "expected a UsageError";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "found \"cosine\", expected one of paper, inverse_sqrt, linear, constant");
  }
}

/// The message that `validate` gives after `change`, or "" where there is none.
std::string complaint(const std::function<void(TrainOptions&)>& change) {
  TrainOptions options;
  change(options);
  try {
    options.validate();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(TrainOptions, TheDefaultsAreValid) {
  EXPECT_EQ(complaint([](TrainOptions&) {}), "");
}

TEST(TrainOptions, ContradictionsNameTheOptions) {
  struct Case {
    std::function<void(TrainOptions&)> change;
    std::vector<std::string> named;
  };
  const std::vector<Case> cases = {
      {[](auto& o) { o.train_source = {"a"}; }, {"train_source names 1", "train_target names 0"}},
      {[](auto& o) {
         o.corpus_weights = {1.0}, o.train_tsv = {"a", "b"};
       },
       {"corpus_weights", "1 weights for 2"}},
      {[](auto& o) { o.corpus_weights = {-1.0}, o.train_tsv = {"a"}; }, {"corpus_weights", "-1"}},
      {[](auto& o) { o.corpus_weights = {1e-300}, o.train_tsv = {"a"}; }, {"0.001 to 1000"}},
      {[](auto& o) { o.corpus_weights = {1e6}, o.train_tsv = {"a"}; }, {"found 1000000"}},
      {[](auto& o) { o.valid_source = "a"; }, {"valid_source", "valid_target"}},
      {[](auto& o) { o.valid_source = o.valid_target = o.valid_tsv = "a"; }, {"valid_tsv"}},
      {[](auto& o) { o.source_tokenizer = "a"; }, {"source_tokenizer", "target_tokenizer"}},
      {[](auto& o) { o.tokenizer = o.source_tokenizer = o.target_tokenizer = "a"; },
       {"tokenizer is given beside"}},
      {[](auto& o) { o.joint_vocabulary = false; }, {"tied_embeddings", "joint_vocabulary"}},
      {[](auto& o) { o.max_length = 1024; }, {"max_length", "1024", "model_max_length"}},
      {[](auto& o) { o.max_length_ratio = 0.5; }, {"max_length_ratio", "0.5"}},
      {[](auto& o) { o.learning_rate = 0; }, {"learning_rate", "found 0"}},
      {[](auto& o) { o.adam_beta2 = 1; }, {"adam_beta2", "found 1"}},
      {[](auto& o) { o.warmup = 0; }, {"warmup", "inverse_sqrt"}},
      {[](auto& o) { o.schedule = Schedule::kLinear; }, {"linear", "stop_after"}},
      {[](auto& o) { o.lanes = 0; }, {"lanes", "is 0", "expected 1"}},
      {[](auto& o) { o.batch_tokens = 1'000'000'001; }, {"batch_tokens", "1000000000"}},
      {[](auto& o) { o.vocabulary_size = 259; }, {"vocabulary_size", "259", "260 to 1000000"}},
      {[](auto& o) { o.character_coverage = 0.5; }, {"character_coverage", "0.5", "0.9"}},
      {[](auto& o) { o.tokenizer_sample = 0; }, {"tokenizer_sample", "found 0"}},
      {[](auto& o) { o.source_bpe_dropout = 1; }, {"source_bpe_dropout: found 1"}},
      {[](auto& o) { o.target_bpe_dropout = -0.1; }, {"target_bpe_dropout: found -0.1"}},
      {[](auto& o) { o.target_bpe_dropout = 0.1, o.subword_model = SubwordModel::kUnigram; },
       {"target_bpe_dropout: found 0.1 with subword_model unigram"}},
      {[](auto& o) { o.model.embedding_dropout = -0.5F; }, {"embedding_dropout", "-0.5", "-1"}},
      {[](auto& o) { o.regularization.r_drop = -1; }, {"r_drop", "-1"}},
      {[](auto& o) { o.regularization.r_drop = 5, o.model.dropout = 0; }, {"r_drop", "dropout"}},
      {[](auto& o) { o.regularization.layer_drop = 1; }, {"layer_drop", "found 1"}},
      {[](auto& o) { o.regularization.layer_drop = -0.1F; }, {"layer_drop: found -0.1,"}},
      {[](auto& o) { o.source_bpe_dropout = o.target_bpe_dropout = 1; },
       {"bpe_dropout (source_bpe_dropout and target_bpe_dropout): found 1"}},
      {[](auto& o) { o.regularization.source_word_dropout = 1; }, {"source_word_dropout"}},
      {[](auto& o) { o.regularization.target_word_dropout = -0.1F; }, {"target_word_dropout"}},
      {[](auto& o) { o.average_last = 5; }, {"average_last", "keep_last"}},
      {[](auto& o) { o.workers = -1; }, {"workers", "-1"}},
      {[](auto& o) { o.model.max_length = 1; }, {"model_max_length: found 1"}},
      {[](auto& o) { o.model.encoder_layers = o.model.decoder_layers = 0; }, {"layers (encoder"}},
      {[](auto& o) { o.model.decoder_layers = 0; }, {"decoder_layers is 0"}},
      {[](auto& o) { o.cache = "caf\xE9"; }, {"cache: the file name caf\xEF\xBF\xBD", "not UTF-8"}},
      {[](auto& o) { o.model.d_model = -5; }, {"d_model", "-5"}},
      {[](auto& o) { o.model.dropout = 1.5f; }, {"dropout", "1.5"}},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string message = complaint(cases[i].change);
    ASSERT_NE(message, "") << "case " << i;
    for (const std::string& part : cases[i].named) {
      EXPECT_NE(message.find(part), std::string::npos) << message << " lacks " << part;
    }
  }
}

}  // namespace
}  // namespace attend
