#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "attend/base/error.h"
#include "attend/data/utf8.h"
#include "attend/search/options.h"
#include "attend/search/text_model.h"
#include "attend/train/options.h"
#include "attend/train/training_data.h"

namespace attend {
namespace {

void at_least(std::string_view option, int64_t value, int64_t least) {
  if (value < least) {
    fail_usage("{}: found {}, expected a whole number of at least {}", option, value, least);
  }
}

void positive(std::string_view option, double value) {
  if (!std::isfinite(value) || value <= 0) {
    fail_usage("{}: found {}, expected a number above 0", option, value);
  }
}

template <typename Number>
void not_negative(std::string_view option, Number value) {
  if (!std::isfinite(value) || value < 0) {
    fail_usage("{}: found {}, expected a number of at least 0", option, value);
  }
}

template <typename Number>  // a float is printed with its own few digits
void in_unit_interval(std::string_view option, Number value) {
  if (!(value >= 0 && value < 1)) {
    fail_usage("{}: found {}, expected a number from 0 to below 1", option, value);
  }
}

/// Checkpoints, logs and recipes hold the names as text.
void check_file_names(const TrainOptions& options) {
  const auto check = [](std::string_view option, const std::string& name) {
    if (valid_utf8(name)) return;
    fail_usage("{}: the file name {} is not UTF-8, and a run could not be resumed; rename the file",
               option, repair_utf8(name).text);
  };
  for (const std::string& name : options.train_source) check("train_source", name);
  for (const std::string& name : options.train_target) check("train_target", name);
  for (const std::string& name : options.train_tsv) check("train_tsv", name);
  check("valid_source", options.valid_source);
  check("valid_target", options.valid_target);
  check("valid_tsv", options.valid_tsv);
  check("cache", options.cache);
  check("tokenizer", options.tokenizer);
  check("source_tokenizer", options.source_tokenizer);
  check("target_tokenizer", options.target_tokenizer);
  check("run", options.run);
  check("tensorboard", options.tensorboard);
}

void check_data(const TrainOptions& options) {
  if (options.train_source.size() != options.train_target.size()) {
    fail_usage(
        "train_source names {} and train_target names {}; expected as many of one as of the other",
        options.train_source.size(), options.train_target.size());
  }
  const size_t corpora = options.train_source.size() + options.train_tsv.size();
  if (!options.corpus_weights.empty() && options.corpus_weights.size() != corpora) {
    fail_usage("corpus_weights: found {} weights for {} corpora; expected one a corpus",
               options.corpus_weights.size(), corpora);
  }
  for (const double weight : options.corpus_weights) {
    constexpr double kLeast = ParallelFiles::kLeastWeight, kLargest = ParallelFiles::kLargestWeight;
    if (weight >= kLeast && weight <= kLargest) continue;
    fail_usage("corpus_weights: found {}, expected numbers from {} to {}", weight, kLeast,
               kLargest);
  }
  if (options.valid_source.empty() != options.valid_target.empty()) {
    fail_usage("{} is given without {}; validation data is both, or one valid_tsv",
               options.valid_source.empty() ? "valid_target" : "valid_source",
               options.valid_source.empty() ? "valid_source" : "valid_target");
  }
  if (!options.valid_source.empty() && !options.valid_tsv.empty()) {
    fail_usage("valid_source and valid_tsv are both given; expected one of them");
  }
  at_least("max_length", options.max_length, 1);
  const double ratio = options.max_length_ratio;
  if (!std::isfinite(ratio) || (ratio < 1 && ratio != 0)) {
    fail_usage("max_length_ratio: found {}, expected a number of at least 1, or 0 for no limit",
               ratio);
  }
}

void check_bpe_dropout(const TrainOptions& options) {
  const double source = options.source_bpe_dropout, target = options.target_bpe_dropout;
  const bool same = source == target;  // as bpe_dropout sets them
  const char* const both = "bpe_dropout (source_bpe_dropout and target_bpe_dropout)";
  in_unit_interval(same ? both : "source_bpe_dropout", source);
  in_unit_interval("target_bpe_dropout", target);
  const bool trains_one = options.tokenizer.empty() && options.source_tokenizer.empty();
  const double dropout = std::max(source, target);
  if (dropout > 0 && trains_one && options.subword_model != SubwordModel::kBpe) {
    fail_usage(
        "{}: found {} with subword_model {}, which has no merges to leave out; expected "
        "subword_model bpe, or 0",
        same         ? both
        : source > 0 ? "source_bpe_dropout"
                     : "target_bpe_dropout",
        dropout, name_of(options.subword_model));
  }
}

void check_tokenizer(const TrainOptions& options) {
  if (options.source_tokenizer.empty() != options.target_tokenizer.empty()) {
    fail_usage("source_tokenizer and target_tokenizer go together; only one of them is given");
  }
  if (!options.tokenizer.empty() && !options.source_tokenizer.empty()) {
    fail_usage(
        "tokenizer is given beside source_tokenizer and target_tokenizer; expected one tokenizer "
        "for both sides or one for each");
  }
  const bool separate = !options.source_tokenizer.empty() || !options.joint_vocabulary;
  if (separate && options.model.tied_embeddings == TiedEmbeddings::kAll) {
    fail_usage(
        "tied_embeddings: found \"all\" with separate vocabularies; expected \"decoder\" or "
        "\"none\", or one tokenizer for both sides (joint_vocabulary)");
  }
  if (!options.tokenizer.empty() && !options.joint_vocabulary) {
    fail_usage(
        "joint_vocabulary is false but one tokenizer is given for both sides; expected "
        "source_tokenizer and target_tokenizer");
  }
  at_least("tokenizer_sample", options.tokenizer_sample, 1);
  check_bpe_dropout(options);
  tokenizer_options(options).validate();
}

/// The fields of a model that options call otherwise.
void check_names(const TransformerConfig& model) {
  constexpr int64_t kMostLayers = 1000, kMostPositions = 1 << 24;
  const int64_t layers = model.encoder_layers;
  if (layers == model.decoder_layers && (layers < 1 || layers > kMostLayers)) {
    fail_usage("layers (encoder_layers and decoder_layers): found {}, expected 1 to {}", layers,
               kMostLayers);
  }
  if (model.max_length < 2 || model.max_length > kMostPositions) {
    fail_usage("model_max_length: found {}, expected 2 to {}", model.max_length, kMostPositions);
  }
}

void check_model(const TrainOptions& options) {
  TransformerConfig model = options.model;
  check_names(model);
  if (model.source_vocabulary_size == 0) model.source_vocabulary_size = options.vocabulary_size;
  if (model.target_vocabulary_size == 0) model.target_vocabulary_size = options.vocabulary_size;
  const float dropout = model.embedding_dropout;
  if (dropout != -1 && !(dropout >= 0 && dropout < 1)) {
    fail_usage(
        "embedding_dropout: found {}, expected a number from 0 to below 1, or -1 for the same as "
        "dropout",
        dropout);
  }
  model.validate();
  // The end-of-sentence token of either side takes a position, too.
  if (options.max_length >= model.max_length) {
    fail_usage(
        "max_length: found {}, expected fewer than the model's positions, which are {}; raise "
        "model_max_length",
        options.max_length, model.max_length);
  }
}

/// What makes two passes over one sentence differ.
bool has_dropout(const TrainOptions& options) {
  const TransformerConfig& model = options.model;
  const Regularization& regularization = options.regularization;
  const auto rates = {model.dropout,
                      model.attention_dropout,
                      model.ffn_dropout,
                      model.embedding_dropout_rate(),
                      regularization.source_word_dropout,
                      regularization.target_word_dropout};
  return std::any_of(rates.begin(), rates.end(), [](float rate) { return rate > 0; });
}

void check_regularization(const TrainOptions& options) {
  const Regularization& regularization = options.regularization;
  not_negative("r_drop", regularization.r_drop);
  for (const auto& [name, rate] : {std::pair("layer_drop", regularization.layer_drop),
                                   {"source_word_dropout", regularization.source_word_dropout},
                                   {"target_word_dropout", regularization.target_word_dropout}}) {
    in_unit_interval(name, rate);
  }
  if (regularization.r_drop > 0 && !has_dropout(options)) {
    fail_usage(
        "r_drop: found {} without any dropout, and two passes do not differ; set dropout, or "
        "r_drop 0",
        regularization.r_drop);
  }
}

void check_optimizer(const TrainOptions& options) {
  in_unit_interval("adam_beta1", options.adam_beta1);
  in_unit_interval("adam_beta2", options.adam_beta2);
  positive("adam_epsilon", options.adam_epsilon);
  not_negative("weight_decay", options.weight_decay);
  positive("learning_rate", options.learning_rate);
  at_least("warmup", options.warmup, 0);
  not_negative("clip_norm", options.clip_norm);
  in_unit_interval("ema", options.ema);
  at_least("max_bad_steps", options.max_bad_steps, 1);
  const bool divides =
      options.schedule == Schedule::kPaper || options.schedule == Schedule::kInverseSqrt;
  if (divides && options.warmup == 0) {
    fail_usage("warmup: found 0, expected at least 1 with the schedule {}",
               name_of(options.schedule));
  }
  if (options.schedule == Schedule::kLinear && options.stop_after == TrainLimit{}) {
    fail_usage(
        "schedule: linear decays to 0 at the end of the run, but stop_after is none; set "
        "stop_after, such as 20Ku");
  }
}

void check_run(const TrainOptions& options) {
  batch_options(options).validate();
  at_least("accumulate", options.accumulate, 1);
  at_least("log_every", options.log_every, 1);
  at_least("keep_last", options.keep_last, 1);
  at_least("average_last", options.average_last, 0);
  if (options.average_last > options.keep_last) {
    fail_usage("average_last: found {}, expected at most keep_last, which is {}",
               options.average_last, options.keep_last);
  }
  at_least("patience", options.patience, 0);
  at_least("valid_beam_size", options.valid_beam_size, 1);
  if (options.valid_beam_size > kMostHypotheses) {
    fail_usage("valid_beam_size: found {}, expected at most {}", options.valid_beam_size,
               kMostHypotheses);
  }
  not_negative("valid_length_penalty", options.valid_length_penalty);
  check_workers(options.workers);
}

}  // namespace

void TrainOptions::validate() const {
  check_file_names(*this);
  check_data(*this);
  check_tokenizer(*this);
  check_model(*this);
  check_regularization(*this);
  check_optimizer(*this);
  check_run(*this);
}

}  // namespace attend
