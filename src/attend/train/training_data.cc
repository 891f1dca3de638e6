#include "attend/train/training_data.h"

#include <algorithm>

#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/data/corpus_reader.h"
#include "attend/data/fingerprint.h"

namespace attend {
namespace {

std::vector<ParallelFiles> training_files(const TrainOptions& options) {
  std::vector<ParallelFiles> files;
  for (std::size_t i = 0; i < options.train_source.size(); ++i) {
    files.push_back({.source = options.train_source[i], .target = options.train_target[i]});
  }
  for (const std::string& tsv : options.train_tsv) files.push_back({.tsv = tsv});
  for (std::size_t i = 0; i < options.corpus_weights.size(); ++i) {
    files[i].weight = options.corpus_weights[i];
  }
  return files;
}

/// Empty without validation data.
std::optional<ParallelFiles> validation_files(const TrainOptions& options) {
  if (options.valid_source.empty() && options.valid_tsv.empty()) return {};
  return ParallelFiles{
      .source = options.valid_source, .target = options.valid_target, .tsv = options.valid_tsv};
}

enum class Side { kSource, kTarget, kBoth };

/// One side's lines, or both, of all corpora, one after the other.
class TrainingLines {
 public:
  TrainingLines(const TrainOptions& options, Side side, const std::atomic<bool>* stop,
                int64_t most_pairs)
      : files_(training_files(options)),
        skip_bad_lines_(options.skip_bad_lines),
        side_(side),
        stop_(stop),
        most_pairs_(most_pairs) {}

  /// Throws StoppedReading.
  bool next(std::string& line) {
    if (stop_ != nullptr && stop_->load()) {
      throw StoppedReading(
          "stopped while the text for the tokenizer was read; the same command starts again");
    }
    if (pending_target_) {
      pending_target_ = false;
      line = target_;
      return true;
    }
    while (true) {
      if (!reader_) {
        if (next_file_ == files_.size()) return false;
        reader_ = std::make_unique<ParallelReader>(files_[next_file_++], skip_bad_lines_);
        pairs_ = 0;
      }
      if (pairs_++ < most_pairs_ && reader_->next(source_, target_)) break;
      reader_.reset();
    }
    pending_target_ = side_ == Side::kBoth;
    line = side_ == Side::kTarget ? target_ : source_;
    return true;
  }

 private:
  std::vector<ParallelFiles> files_;
  bool skip_bad_lines_;
  Side side_;
  const std::atomic<bool>* stop_;
  int64_t most_pairs_;  ///< of each corpus
  int64_t pairs_ = 0;   ///< of this corpus
  std::size_t next_file_ = 0;
  std::unique_ptr<ParallelReader> reader_;
  std::string source_, target_;
  bool pending_target_ = false;
};

std::shared_ptr<const Tokenizer> train_tokenizer(const TrainOptions& options, Side side,
                                                 const std::atomic<bool>* stop,
                                                 int64_t most_pairs) {
  static constexpr const char* kNames[] = {"source", "target", "joint"};
  logger().info(
      "training a {} tokenizer of {} pieces; once its text is read, a signal waits for it",
      kNames[static_cast<int>(side)], options.vocabulary_size);
  TrainingLines lines(options, side, stop, most_pairs);
  return std::make_shared<const Tokenizer>(Tokenizer::train(
      tokenizer_options(options), [&](std::string& line) { return lines.next(line); }));
}

void log_report(const char* what, const ParallelCorpus& corpus) {
  for (const CorpusPart& part : corpus.parts()) {
    logger().info("{}: {}: {}", what, part.name, part.report.to_string());
  }
  logger().info("{}: {} source tokens, {} target tokens", what, corpus.source_tokens(),
                corpus.target_tokens());
}

std::string fingerprint_of(const ParallelText& text) {
  Fingerprint fingerprint;
  for (const auto* side : {&text.source, &text.target}) {
    for (const std::string& line : *side) {
      fingerprint.add(line);
      fingerprint.add("\n");
    }
  }
  return fingerprint.hex();
}

PairDropout pair_dropout(const TrainOptions& options, const Tokenizers& tokenizers) {
  PairDropout dropout{.source_probability = options.source_bpe_dropout,
                      .target_probability = options.target_bpe_dropout,
                      .max_length = training_corpus(options).max_length};
  const auto make = [](const Tokenizer& tokenizer, const char* name) {
    return std::make_shared<const BpeDropout>(tokenizer, name);
  };
  const bool joint = tokenizers.source == tokenizers.target;
  if (options.source_bpe_dropout > 0) {
    dropout.source = make(*tokenizers.source, "source_bpe_dropout");
  }
  if (options.target_bpe_dropout > 0) {
    dropout.target =
        joint && dropout.source ? dropout.source : make(*tokenizers.target, "target_bpe_dropout");
  }
  return dropout;
}

/// What a run reads of the training text, without the text.
TrainingData without_text(const TrainOptions& options, Tokenizers tokenizers) {
  TrainingData data;
  data.tokenizers = std::move(tokenizers);
  data.dropout = pair_dropout(options, data.tokenizers);
  return data;
}

/// The rest of what a run reads.
TrainingData with_validation(const TrainOptions& options, TrainingData data) {
  const std::optional<ParallelFiles> valid = validation_files(options);
  if (!valid) return data;
  data.valid = std::make_unique<ParallelCorpus>(
      ParallelCorpus::load({.corpora = {*valid},
                            .skip_bad_lines = options.skip_bad_lines,
                            .max_length = options.model.max_length - 1,  // and end of sentence
                            .max_length_ratio = 0,
                            .threads = options.workers},
                           *data.tokenizers.source, *data.tokenizers.target));
  log_report("validation data", *data.valid);
  data.valid_text = read_parallel_text(*valid, options.skip_bad_lines);
  data.valid_fingerprint = fingerprint_of(*data.valid_text);
  return data;
}

}  // namespace

void check_texts(const TrainOptions& options) {
  for (const ParallelFiles& files : training_files(options)) files.refuse_pipes();
  if (const auto valid = validation_files(options)) {
    read_parallel_text(*valid, options.skip_bad_lines);
  }
}

Tokenizers make_tokenizers(const TrainOptions& options, const std::atomic<bool>* stop,
                           int64_t most_pairs) {
  const auto trained = [&](Side side) {
    for (const ParallelFiles& files : training_files(options)) files.check();
    return train_tokenizer(options, side, stop, most_pairs);
  };
  const auto load = [](const std::string& path) {
    return std::make_shared<const Tokenizer>(Tokenizer::load(path));
  };
  if (!options.tokenizer.empty()) {
    const auto both = load(options.tokenizer);
    return {both, both};
  }
  if (options.source_tokenizer.empty() && options.target_tokenizer.empty() &&
      options.joint_vocabulary) {
    const auto both = trained(Side::kBoth);
    return {both, both};
  }
  return {
      options.source_tokenizer.empty() ? trained(Side::kSource) : load(options.source_tokenizer),
      options.target_tokenizer.empty() ? trained(Side::kTarget) : load(options.target_tokenizer)};
}

CorpusOptions training_corpus(const TrainOptions& options) {
  std::string cache = options.cache;
  if (cache.empty() && !options.run.empty()) cache = Path(options.run) / "cache";
  return {.corpora = training_files(options),
          .skip_bad_lines = options.skip_bad_lines,
          .max_length = std::min(options.max_length, options.model.max_length),
          .max_length_ratio = options.max_length_ratio,
          .threads = options.workers,
          .cache = std::move(cache)};
}

TrainingData load_training_data(const TrainOptions& options, Tokenizers tokenizers,
                                const TrainHooks& hooks) {
  TrainingData data = without_text(options, std::move(tokenizers));
  CorpusOptions corpus = training_corpus(options);
  corpus.on_progress = hooks.on_reading;
  corpus.stop = hooks.stop;
  data.train = std::make_unique<ParallelCorpus>(
      ParallelCorpus::load(corpus, *data.tokenizers.source, *data.tokenizers.target));
  log_report("training data", *data.train);
  return with_validation(options, std::move(data));
}

TrainingData sample_training_data(const TrainOptions& options, Tokenizers tokenizers) {
  constexpr int64_t kSample = 20'000;
  TrainingData data = without_text(options, std::move(tokenizers));
  CorpusOptions corpus = training_corpus(options);
  corpus.cache.clear();
  corpus.most_pairs = kSample;
  data.train = std::make_unique<ParallelCorpus>(
      ParallelCorpus::load(corpus, *data.tokenizers.source, *data.tokenizers.target));
  return with_validation(options, std::move(data));
}

TokenizerTrainingOptions tokenizer_options(const TrainOptions& options) {
  return {.subword_model = options.subword_model,
          .vocabulary_size = options.vocabulary_size,
          .character_coverage = options.character_coverage,
          .max_sentences = options.tokenizer_sample,
          .seed = options.seed};
}

BatchOptions batch_options(const TrainOptions& options) {
  return {.batch_tokens = options.batch_tokens,
          .lanes = options.lanes,
          .lane_tokens = options.lane_tokens,
          .seed = options.seed};
}

}  // namespace attend
