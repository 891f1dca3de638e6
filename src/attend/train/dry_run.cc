#include <algorithm>
#include <chrono>

#include "attend/base/error.h"
#include "attend/io/files.h"
#include "attend/train/bench.h"
#include "attend/train/trainer.h"
#include "attend/train/training_data.h"

namespace attend {
namespace {

constexpr double kMiB = 1 << 20;

/// The batch with the most tokens of the first window: what memory must hold.
Batch largest_batch(const TrainOptions& options, const ParallelCorpus& corpus) {
  BatchStream stream(corpus, batch_options(options));
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

std::string describe_disk(const TrainOptions& options, int64_t weights) {
  const int64_t copies = options.ema > 0 ? 4 : 3;  // weights, two moments, moving average
  const int64_t checkpoint = copies * 4 * weights;
  const int64_t kept = std::max(options.keep_last, options.average_last) + 2;  // best, and the next
  const int64_t needed = checkpoint * kept + 2 * 4 * weights;
  std::string text =
      fmt::format("disk         {:.0f} MiB ({} checkpoints of {:.0f} MiB)",
                  static_cast<double>(needed) / kMiB, kept, static_cast<double>(checkpoint) / kMiB);
  if (options.run.empty()) return text + "\n";
  const int64_t free = free_bytes(options.run);
  text += fmt::format(", {:.0f} MiB free\n", static_cast<double>(free) / kMiB);
  if (free < needed) {
    fail("{} has {:.0f} MiB free, and the run will need {:.0f} MiB; free some, or lower keep_last",
         options.run, static_cast<double>(free) / kMiB, static_cast<double>(needed) / kMiB);
  }
  return text;
}

}  // namespace

std::string dry_run(const TrainOptions& given) {
  TrainOptions options = given;
  options.validate();
  options.workers = resolve_workers(options.workers);
  Tokenizers tokenizers = make_tokenizers(options);
  options.model.source_vocabulary_size = tokenizers.source->vocabulary_size();
  options.model.target_vocabulary_size = tokenizers.target->vocabulary_size();
  const TrainingData data = load_training_data(options, std::move(tokenizers));
  const DType compute = resolve_precision(options.precision);
  Transformer model(options.model, compute, true);
  model.initialize(options.seed);
  const int64_t weights = model.parameters().weight_count();
  std::string text = fmt::format(
      "pairs        {}\nvocabulary   {} source, {} target\nmodel        {} weights, {}\n",
      data.train->report().to_string(), options.model.source_vocabulary_size,
      options.model.target_vocabulary_size, weights, name_of(compute));
  text += describe_disk(options, weights);

  Engine engine(model, options, options.workers);
  const Batch batch = largest_batch(options, *data.train);
  const auto before = std::chrono::steady_clock::now();
  engine.update({batch}, 1, learning_rate(options, 1, 0));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  text += fmt::format("memory       {:.0f} MiB at the largest of the first batches\n",
                      static_cast<double>(peak_resident_bytes()) / kMiB);
  text += fmt::format("an update    {} target tokens, {:.2f} s with {} worker{}\n",
                      batch.target_tokens * options.accumulate,
                      seconds * static_cast<double>(options.accumulate), options.workers,
                      options.workers == 1 ? "" : "s");
  return text;
}

}  // namespace attend
