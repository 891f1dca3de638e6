#include "attend/report/series.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>

#include <fmt/format.h>

namespace attend {
namespace {

using Json = nlohmann::ordered_json;

/// Points that become one.
int64_t points_merged(std::size_t count, int64_t most) {
  return std::max<int64_t>(1, (static_cast<int64_t>(count) + most - 1) / most);
}

void add_amount(Json& columns, const TrainingAmount& done) {
  columns["update"].push_back(done.updates);
  columns["epoch"].push_back(rounded(done.epochs));
  columns["tokens"].push_back(done.tokens);
  columns["seconds"].push_back(rounded(done.seconds));
}

/// Of the finite ones.
template <typename Value>
double mean_of(std::span<const RunHistory::Training> points, const Value& value) {
  double sum = 0;
  int64_t count = 0;
  for (const RunHistory::Training& point : points) {
    const double each = value(point.progress);
    if (!std::isfinite(each)) continue;
    sum += each;
    ++count;
  }
  return count == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(count);
}

void add_merged(Json& columns, std::span<const RunHistory::Training> points) {
  const TrainProgress& last = points.back().progress;
  add_amount(columns, last.done);
  const auto mean = [&](const auto& value) { return mean_of(points, value); };
  columns["loss"].push_back(rounded(mean([](const TrainProgress& of) { return of.loss; })));
  columns["perplexity"].push_back(
      rounded(std::exp(mean([](const TrainProgress& of) { return std::log(of.perplexity); }))));
  columns["gradient_norm"].push_back(
      rounded(mean([](const TrainProgress& of) { return of.gradient_norm; })));
  // The points are of as many updates each, and so of about as many tokens.
  columns["tokens_per_second"].push_back(
      rounded(1 / mean([](const TrainProgress& of) { return 1 / of.tokens_per_second; })));
  columns["learning_rate"].push_back(rounded(last.learning_rate));
}

}  // namespace

Json rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::stod(fmt::format("{:.6g}", value));
}

Json training_series(const std::vector<RunHistory::Training>& training, int64_t most) {
  Json columns = Json::object();
  const int64_t merged = points_merged(training.size(), most);
  columns["points"] = training.size();
  columns["merged"] = merged;
  for (const char* name : {"update", "epoch", "tokens", "seconds", "loss", "perplexity",
                           "gradient_norm", "tokens_per_second", "learning_rate"}) {
    columns[name] = Json::array();
  }
  const std::span<const RunHistory::Training> all(training);
  for (std::size_t i = 0; i < all.size(); i += static_cast<std::size_t>(merged)) {
    add_merged(columns, all.subspan(i, std::min(static_cast<std::size_t>(merged), all.size() - i)));
  }
  return columns;
}

Json validation_series(const std::vector<RunHistory::Validation>& validations, int64_t most) {
  Json columns = Json::object();
  const int64_t kept_one_in = points_merged(validations.size(), most);
  columns["points"] = validations.size();
  columns["merged"] = kept_one_in;
  for (const char* name :
       {"update", "epoch", "tokens", "seconds", "loss", "perplexity", "accuracy", "bleu", "chrf"}) {
    columns[name] = Json::array();
  }
  const auto best = std::find_if(validations.rbegin(), validations.rend(),
                                 [](const auto& each) { return each.best; });
  for (std::size_t i = 0; i < validations.size(); ++i) {
    const RunHistory::Validation& each = validations[i];
    const bool is_best = best != validations.rend() && &each == &*best;
    const bool is_last = i + 1 == validations.size();
    if (static_cast<int64_t>(i) % kept_one_in != 0 && !is_best && !is_last) continue;
    if (is_best) columns["best"] = columns["update"].size();
    add_amount(columns, each.done);
    columns["loss"].push_back(rounded(each.scores.loss));
    columns["perplexity"].push_back(rounded(each.scores.perplexity));
    columns["accuracy"].push_back(rounded(100 * each.scores.accuracy));
    columns["bleu"].push_back(each.scores.bleu ? rounded(*each.scores.bleu) : Json());
    columns["chrf"].push_back(each.scores.chrf ? rounded(*each.scores.chrf) : Json());
  }
  return columns;
}

}  // namespace attend
