#include "attend/train/validation.h"

#include <cmath>

#include "attend/metrics/bleu.h"
#include "attend/metrics/chrf.h"

namespace attend {
namespace {

SearchOptions search_options(const TrainOptions& options, const MemoryPlan& plan) {
  SearchOptions search{.beam_size = options.valid_beam_size,
                       .length_penalty = options.valid_length_penalty};
  if (plan.search_batch_tokens > 0) search.batch_tokens = plan.search_batch_tokens;
  return search;
}

bool translates(ValidationMetric metric) {
  return metric != ValidationMetric::kLoss && metric != ValidationMetric::kPerplexity;
}

}  // namespace

Validator::Validator(const TrainOptions& options, const TrainingData& data,
                     std::shared_ptr<const Transformer> model, Engine& engine,
                     const MemoryPlan& plan)
    : options_(options),
      data_(data),
      engine_(engine),
      bounded_(plan.worker_bytes > 0),
      batches_(validation_batches(*data.valid, batch_options(options))),
      translator_(std::move(model), data.tokenizers.source, data.tokenizers.target,
                  {.search = search_options(options, plan),
                   .workers = engine.workers().size(),
                   .worker_memory = plan.worker_bytes}) {}

ValidationScores Validator::run() {
  const LossSums sums = engine_.validate(batches_);
  const double tokens = static_cast<double>(sums.tokens);
  ValidationScores scores{.loss = sums.loss / tokens,
                          .perplexity = std::exp(sums.nll / tokens),
                          .accuracy = static_cast<double>(sums.correct) / tokens};
  if (!translates(options_.validation_metric)) return scores;
  if (bounded_) engine_.release_memory();  // the translator's workers take their place
  std::vector<std::string> hypotheses;
  for (const Translation& translation : translator_.translate(data_.valid_text->source)) {
    hypotheses.push_back(translation.text());
  }
  scores.bleu = corpus_bleu(hypotheses, {data_.valid_text->target}).value;
  scores.chrf = corpus_chrf(hypotheses, {data_.valid_text->target}).value;
  return scores;
}

}  // namespace attend
