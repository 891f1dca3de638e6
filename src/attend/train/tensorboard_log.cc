#include "attend/train/tensorboard_log.h"

namespace attend {
namespace {

Scalar scalar(const char* tag, double value) { return {tag, static_cast<float>(value)}; }

}  // namespace

void TensorboardLog::progress(double time, const TrainProgress& progress) {
  file_.add(time, progress.done.updates,
            {scalar("train/loss", progress.loss), scalar("train/perplexity", progress.perplexity),
             scalar("train/learning_rate", progress.learning_rate),
             scalar("train/gradient_norm", progress.gradient_norm),
             scalar("train/tokens_per_second", progress.tokens_per_second)});
}

void TensorboardLog::validation(double time, const TrainingAmount& done,
                                const ValidationScores& scores) {
  std::vector<Scalar> scalars = {scalar("valid/loss", scores.loss),
                                 scalar("valid/perplexity", scores.perplexity),
                                 scalar("valid/accuracy", scores.accuracy)};
  if (scores.bleu) scalars.push_back(scalar("valid/bleu", *scores.bleu));
  if (scores.chrf) scalars.push_back(scalar("valid/chrf", *scores.chrf));
  file_.add(time, done.updates, scalars);
}

}  // namespace attend
