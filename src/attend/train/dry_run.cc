#include <algorithm>
#include <chrono>

#include "attend/base/available_memory.h"
#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/io/checkpoint.h"
#include "attend/train/bench.h"
#include "attend/train/engine.h"
#include "attend/train/run_folder.h"
#include "attend/train/schedule.h"
#include "attend/train/trainer.h"
#include "attend/train/training_data.h"

namespace attend {
namespace {

constexpr double kMiB = 1 << 20;
/// Pairs of each corpus that a tokenizer is tried on: enough for its pieces, and read in a moment.
constexpr int64_t kTokenizerSample = 50'000;

/// The batch with the most tokens of the first window: what memory must hold.
Batch largest_batch(const TrainOptions& options, const TrainingData& data) {
  BatchStream stream(*data.train, batch_options(options), {}, data.dropout);
  Batch largest;
  constexpr int kLookedAt = 100;
  for (int i = 0; i < kLookedAt; ++i) {
    Batch batch = stream.next();
    const bool last = batch.last_of_epoch;
    if (batch.source_tokens + batch.target_tokens > largest.source_tokens + largest.target_tokens) {
      largest = std::move(batch);
    }
    if (last) break;
  }
  return largest;
}

/// Before anything is allocated, so that a model that is too large is not found out by the system's
/// killing the process.
std::string describe_memory(const TrainOptions& options, DType compute) {
  // Weights, gradient, two moments; the moving average; the copy to compute with.
  const int64_t bytes_each = 16 + (options.ema > 0 ? 4 : 0) + (compute == DType::kBFloat16 ? 2 : 0);
  const int64_t weights = parameter_count(options.model);
  const double needed = static_cast<double>(weights) * static_cast<double>(bytes_each);
  const auto available = static_cast<double>(available_memory_bytes());
  if (needed > available) {
    fail(
        "the model has {} weights and training it takes {:.0f} MiB of memory before the first "
        "batch, but {:.0f} MiB are available; choose a smaller model",
        weights, needed / kMiB, available / kMiB);
  }
  return fmt::format(
      "memory       {:.0f} MiB for the weights and their optimizer, {:.0f} MiB "
      "available\n",
      needed / kMiB, available / kMiB);
}

/// Pairs as the run will find them, by a sample where the text is long.
std::string describe_pairs(const ParallelCorpus& sample) {
  const bool all = std::all_of(sample.parts().begin(), sample.parts().end(),
                               [](const CorpusPart& part) { return part.share_read == 1; });
  if (all) return fmt::format("pairs        {}\n", sample.report().to_string());
  return fmt::format("pairs        about {}, by the first {} of the text\n",
                     sample.summary().extrapolated().report().to_string(),
                     sample.report().pairs_read);
}

/// Names the folder, what it has free and what will be written there. Throws Error where that is
/// too much.
std::string describe_free(const std::string& folder, int64_t needed, std::string_view advice) {
  const int64_t free = free_bytes(folder);
  if (free < needed) {
    fail("{} has {:.0f} MiB free, and the run will need {:.0f} MiB; free some, or {}", folder,
         static_cast<double>(free) / kMiB, static_cast<double>(needed) / kMiB, advice);
  }
  return fmt::format(", {:.0f} MiB free\n", static_cast<double>(free) / kMiB);
}

/// Bytes of token ids still to be written.
int64_t needed_cache(const TrainOptions& options, const TrainingData& data) {
  const auto& [source, target] = data.tokenizers;
  if (has_complete_cache(training_corpus(options), *source, *target)) return 0;
  return cache_bytes(data.train->summary().extrapolated(), *source, *target);
}

std::string describe_disk(const TrainOptions& options, int64_t weights, int64_t cache) {
  const int64_t copies = options.ema > 0 ? 4 : 3;  // weights, two moments, moving average
  const int64_t checkpoint = copies * 4 * weights;
  const int64_t kept = std::max(options.keep_last, options.average_last) + 2;  // best, and the next
  const bool cache_in_run = options.cache.empty();
  const int64_t needed = checkpoint * kept + 2 * 4 * weights + (cache_in_run ? cache : 0);
  std::string text = fmt::format(
      "disk         {:.0f} MiB ({} checkpoints of {:.0f} MiB{})",
      static_cast<double>(needed) / kMiB, kept, static_cast<double>(checkpoint) / kMiB,
      cache_in_run ? fmt::format(", {:.0f} MiB of token ids", static_cast<double>(cache) / kMiB)
                   : "");
  text += options.run.empty() ? "\n" : describe_free(options.run, needed, "lower keep_last");
  if (cache_in_run) return text;
  text += fmt::format("cache        {:.0f} MiB of token ids in {}",
                      static_cast<double>(cache) / kMiB, options.cache);
  return text + describe_free(options.cache, cache, "choose another --cache");
}

}  // namespace

std::string dry_run(const TrainOptions& given) {
  TrainOptions options = given;
  options.validate();
  if (!options.run.empty()) {
    refuse_unwritable_folder("run", options.run);
    refuse_lost_checkpoints(options.run);
  }
  if (!options.tensorboard.empty()) refuse_unwritable_folder("tensorboard", options.tensorboard);
  check_texts(options);
  options.workers = resolve_workers(options.workers);
  const bool resumes = !options.run.empty() && !list_checkpoints(options.run).empty();
  Tokenizers tokenizers =
      resumes ? tokenizers_of_run(options) : make_tokenizers(options, nullptr, kTokenizerSample);
  options.model.source_vocabulary_size = tokenizers.source->vocabulary_size();
  options.model.target_vocabulary_size = tokenizers.target->vocabulary_size();
  const TrainingData data = sample_training_data(options, std::move(tokenizers));
  const DType compute = choose_precision(options.precision);
  const int64_t weights = parameter_count(options.model);
  std::string text = describe_pairs(*data.train);
  text += fmt::format("vocabulary   {} source, {} target\nmodel        {} weights, {}\n",
                      options.model.source_vocabulary_size, options.model.target_vocabulary_size,
                      weights, name_of(compute));
  text += describe_disk(options, weights, needed_cache(options, data));
  text += describe_memory(options, compute);

  Transformer model(options.model, compute, true);
  model.initialize(options.seed);
  Engine engine(model, options, options.workers);
  options.regularization.layer_drop = 0;  // what the run will need is the most that it may
  const Batch batch = largest_batch(options, data);
  const auto before = std::chrono::steady_clock::now();
  engine.update({batch}, 1, learning_rate(options, 1, 0));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  text += fmt::format("             {:.0f} MiB in all at the largest of the first batches\n",
                      static_cast<double>(peak_resident_bytes()) / kMiB);
  text += fmt::format("an update    {} target tokens, {:.2f} s with {} worker{}\n",
                      batch.target_tokens * options.accumulate,
                      seconds * static_cast<double>(options.accumulate), options.workers,
                      options.workers == 1 ? "" : "s");
  return text;
}

}  // namespace attend
