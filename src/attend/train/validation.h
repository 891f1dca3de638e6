#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attend/search/translator.h"
#include "attend/train/engine.h"
#include "attend/train/memory_plan.h"
#include "attend/train/run_state.h"
#include "attend/train/training_data.h"

namespace attend {

/// Measures a model on the validation data: the loss, and BLEU and chrF of its beam-search
/// translations, by the same code as `attend translate` and `attend evaluate` (contract 25). Within
/// the memory of a plan, where it says any (contract 18).
class Validator {
 public:
  Validator(const TrainOptions& options, const TrainingData& data,
            std::shared_ptr<const Transformer> model, Engine& engine, const MemoryPlan& plan);

  /// Where `validation_metric` is the loss or the perplexity, nothing is translated.
  ValidationScores run();

 private:
  const TrainOptions& options_;
  const TrainingData& data_;
  Engine& engine_;
  bool bounded_;
  std::vector<Batch> batches_;
  Translator translator_;
};

}  // namespace attend
