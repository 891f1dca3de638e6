#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attend/autograd/regularization.h"
#include "attend/data/subword_model.h"
#include "attend/models/config.h"
#include "attend/models/precision.h"

namespace attend {

enum class OptimizerKind { kAdam, kAdamW };
/// kPaper: d_model^-0.5 · min(step^-0.5, step · warmup^-1.5) (§5.3), times learning_rate;
/// kInverseSqrt: linear warm-up to learning_rate, then · sqrt(warmup / step);
/// kLinear: linear warm-up to learning_rate, then linearly to 0 at the end of the run;
/// kConstant: linear warm-up to learning_rate, then learning_rate.
enum class Schedule { kPaper, kInverseSqrt, kLinear, kConstant };
/// kLoss: what training lowers, smoothing included; kPerplexity: without it.
enum class ValidationMetric { kLoss, kPerplexity, kBleu, kChrf };

/// An amount of training: exactly one field is set; none is set for "no limit".
/// Written as in `10e` (epochs), `5Ku` (updates), `2Gt` (target tokens), `30m` / `2h` / `45s`.
struct TrainLimit {
  std::optional<double> epochs = std::nullopt;
  std::optional<int64_t> updates = std::nullopt;
  std::optional<int64_t> tokens = std::nullopt;
  std::optional<double> seconds = std::nullopt;
  bool operator==(const TrainLimit&) const = default;
};

/// Parses the notation above or `none`; suffixes K, M, G multiply by 10^3, 10^6, 10^9. Throws
/// UsageError saying what was found and what was expected.
TrainLimit parse_train_limit(std::string_view text);
/// The shortest text that parses to the same limit: `none`, `10e`, `5Ku`, `2Gt`, `1800s`.
std::string to_string(const TrainLimit& limit);

/// A whole number, with a suffix or none: `4096`, `4K`, `1.5M`. Throws UsageError saying what was
/// found and what was expected.
int64_t parse_count(std::string_view text);

/// An amount of memory; 0 bytes is no bound. Written as in `512M`, `4G` (powers of 1024) or `none`.
struct MemoryLimit {
  int64_t bytes = 0;
  bool operator==(const MemoryLimit&) const = default;
};
/// Throws UsageError saying what was found and what was expected.
MemoryLimit parse_memory_limit(std::string_view text);
std::string to_string(const MemoryLimit& limit);

/// Names as flags, YAML and recipes spell them, e.g. "bfloat16", "adamw", "inverse_sqrt", "bleu".
/// The parsers throw UsageError listing the names that there are.
std::string_view name_of(OptimizerKind value);
std::string_view name_of(Schedule value);
std::string_view name_of(ValidationMetric value);
OptimizerKind parse_optimizer(std::string_view name);
Schedule parse_schedule(std::string_view name);
ValidationMetric parse_validation_metric(std::string_view name);

/// Everything that `attend train` can be told. Each field is one flag and one YAML key of the same
/// name (with dashes as flags: --train-source).
struct TrainOptions {
  // Data
  std::vector<std::string> train_source;  ///< one or several files, .gz or not
  std::vector<std::string> train_target;
  std::vector<std::string> train_tsv;  ///< source TAB target
  std::vector<double> corpus_weights;  ///< one a corpus: the pairs of files first, then the TSVs
  std::string valid_source;
  std::string valid_target;
  std::string valid_tsv;
  bool skip_bad_lines = false;
  int64_t max_length = 256;  ///< tokens of either side; longer pairs are left out and counted
  double max_length_ratio =
      9.0;            ///< longer / shorter, in tokens; pairs beyond are left out; 0: no limit
  std::string cache;  ///< the folder for the training text's token ids; empty: `cache` in the run's

  // Tokenizer
  std::string tokenizer;         ///< a SentencePiece model to use; empty: train one
  std::string source_tokenizer;  ///< with separate vocabularies
  std::string target_tokenizer;
  int64_t vocabulary_size = 10000;
  SubwordModel subword_model = SubwordModel::kBpe;
  bool joint_vocabulary = true;
  double character_coverage = 1.0;
  int64_t tokenizer_sample = 2000000;  ///< sentences that the tokenizer is trained on, at most
  double source_bpe_dropout = 0.0;     ///< share of merges left out of a word; 0: none
  double target_bpe_dropout = 0.0;

  // Model. `preset` first, then the fields that were given one by one.
  std::string preset = "base";
  TransformerConfig model;

  Regularization regularization;

  // Batches
  int64_t batch_tokens = 4096;  ///< target (or source) tokens a step, whichever is more
  int64_t lanes = 4;            ///< parts a batch is cut into: so many or a multiple of it
  int64_t lane_tokens = 1280;   ///< of a part, at most; so that a batch of 4096 is four of them
  int64_t accumulate = 1;       ///< batches a step

  // Optimizer
  OptimizerKind optimizer = OptimizerKind::kAdam;
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.98;
  double adam_epsilon = 1e-9;
  double weight_decay = 0.0;  ///< AdamW: decoupled; Adam: added to the gradient
  Schedule schedule = Schedule::kInverseSqrt;
  double learning_rate = 1e-3;
  int64_t warmup = 4000;       ///< updates
  double clip_norm = 0.0;      ///< 0: no clipping
  double ema = 0.0;            ///< decay of the moving average of weights; 0: none
  int64_t max_bad_steps = 20;  ///< steps in a row with a loss or gradient that is not finite

  // Run
  std::string run;  ///< the run's folder
  TrainLimit stop_after;
  TrainLimit validate_every = {.updates = 1000};
  TrainLimit checkpoint_every = {.updates = 1000};
  int64_t log_every = 50;    ///< updates
  std::string tensorboard;   ///< a folder for TensorBoard's event files; empty: none
  int64_t keep_last = 3;     ///< checkpoints
  int64_t average_last = 0;  ///< at the end, average this many last checkpoints; 0: do not
  ValidationMetric validation_metric = ValidationMetric::kBleu;
  int64_t patience = 0;  ///< validations without an improvement before stopping; 0: never
  int64_t valid_beam_size = 4;
  double valid_length_penalty = 0.6;
  uint64_t seed = 1;
  int64_t workers = 0;     ///< 0: one a core
  MemoryLimit memory;      ///< of the whole process; lanes are made small enough for it
  bool recompute = false;  ///< run layers again in the backward pass instead of keeping them
  Precision precision = Precision::kAuto;
  bool profile = false;  ///< say at the end where the time went, op by op
  bool dry_run = false;

  /// Throws UsageError where a value is out of range or options contradict each other, naming the
  /// options, what they hold and what was expected. Files are not looked at, and the vocabulary
  /// sizes of `model` may still be 0. A run without training data is allowed: it resumes.
  void validate() const;
};

}  // namespace attend
