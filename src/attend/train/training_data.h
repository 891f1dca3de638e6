#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "attend/data/batches.h"
#include "attend/data/corpus.h"
#include "attend/data/tokenizer.h"
#include "attend/train/options.h"
#include "attend/train/trainer.h"

namespace attend {

/// With a joint vocabulary both pointers are the same.
struct Tokenizers {
  std::shared_ptr<const Tokenizer> source;
  std::shared_ptr<const Tokenizer> target;
};

/// All that a run reads: tokenizers, the training corpus as token ids, and the validation text.
struct TrainingData {
  Tokenizers tokenizers;
  PairDropout dropout;  ///< of the training corpus
  std::unique_ptr<ParallelCorpus> train;
  std::unique_ptr<ParallelCorpus> valid;  ///< null without validation data
  std::optional<ParallelText> valid_text;
  std::string valid_fingerprint;  ///< of that text; empty without validation data
};

/// What can be said of the texts at once, before what takes long, and without a look into training
/// text that a cache stands for: that it can be read again (ParallelFiles::refuse_pipes), and that
/// the validation text is whole. Throws Error.
void check_texts(const TrainOptions& options);

/// Loads the tokenizers that the options name, or trains them on the training text: all of it, or
/// the first `most_pairs` of each corpus. Where `stop` becomes true while that text is read, it
/// throws StoppedReading; SentencePiece itself cannot be stopped.
Tokenizers make_tokenizers(const TrainOptions& options, const std::atomic<bool>* stop = nullptr,
                           int64_t most_pairs = INT64_MAX);

/// The training text as options name it, with the cache of the run.
CorpusOptions training_corpus(const TrainOptions& options);

/// Reads and tokenizes everything, or opens the cache of it; logs what was kept and what was left
/// out, by reason (contract 9). Throws Error and UsageError as the readers do.
TrainingData load_training_data(const TrainOptions& options, Tokenizers tokenizers,
                                const TrainHooks& hooks);

/// The same by the first pairs of each corpus and without a cache (--dry-run).
TrainingData sample_training_data(const TrainOptions& options, Tokenizers tokenizers);

/// How the tokenizers of a run are trained.
TokenizerTrainingOptions tokenizer_options(const TrainOptions& options);

/// How a run cuts its corpus into updates.
BatchOptions batch_options(const TrainOptions& options);

}  // namespace attend
