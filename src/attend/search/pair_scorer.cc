#include "attend/search/pair_scorer.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/base/worker_pool.h"
#include "attend/data/tokenizer.h"
#include "attend/data/utf8.h"
#include "attend/kernels/compute_thread.h"
#include "attend/search/answers.h"
#include "attend/search/hypothesis_score.h"
#include "attend/search/load_model.h"
#include "attend/search/score.h"
#include "attend/search/text_model.h"

namespace attend {
namespace {

// A window, for each worker: enough to sort by length, and for all workers to have batches.
constexpr int64_t kWindowBytes = int64_t{1} << 18;
constexpr int64_t kWindowPairs = 4096;
constexpr int64_t kPairsAtOnce = 64;  // that a worker tokenizes before it asks for more

/// A pair on its way.
struct Job {
  GivenPair pair;
  TokenPair tokens;
  Answer answer;
  bool repaired = false;
  bool too_long = false;
  bool scored = false;  ///< there is something for the model to score
};

/// Jobs that are run at once, as places in the window's order.
struct Range {
  std::size_t first;
  std::size_t end;
};

}  // namespace

void PairScorerOptions::validate() const {
  check_workers(workers);
  if (!std::isfinite(length_penalty) || length_penalty < 0) {
    fail_usage("length_penalty: found {}, expected a number of at least 0", length_penalty);
  }
  if (batch_tokens < 1) {
    fail_usage("batch_tokens: found {}, expected a whole number from 1", batch_tokens);
  }
}

double ScoreCounts::perplexity() const {
  return target_tokens == 0 ? 1 : std::exp(-log_prob / static_cast<double>(target_tokens));
}

struct PairScorer::State {
  State(std::shared_ptr<const Transformer> the_model, std::shared_ptr<const Tokenizer> the_source,
        std::shared_ptr<const Tokenizer> the_target, const PairScorerOptions& the_options)
      : model(std::move(the_model)),
        source(std::move(the_source)),
        target(std::move(the_target)),
        options(the_options),
        tokens(search_tokens(*source, *target)),
        answers(model, source, target, options.details),
        memory(static_cast<std::size_t>(worker_count(options.workers))),
        pool(worker_count(options.workers), [] { prepare_compute_thread(); }) {}

  std::shared_ptr<const Transformer> model;
  std::shared_ptr<const Tokenizer> source;
  std::shared_ptr<const Tokenizer> target;
  PairScorerOptions options;
  SearchTokens tokens;
  AnswerMaker answers;
  std::vector<MemoryPool> memory;  ///< a worker's own
  WorkerPool pool;

  bool read_window(const Next& next, std::vector<Job>& window, ScoreCounts& counts) const;
  void score_window(std::vector<Job>& window);
  void tokenize(Job& job) const;
  std::vector<Range> cut(const std::vector<Job>& window, std::vector<std::size_t>& order) const;
  void score_batch(std::vector<Job>& window, std::span<const std::size_t> batch, int64_t worker);
  void finish(Job& job, PairScores scores) const;
  void report(const Job& job, ScoreCounts& counts) const;
};

/// False where there was no pair left.
bool PairScorer::State::read_window(const Next& next, std::vector<Job>& window,
                                    ScoreCounts& counts) const {
  window.clear();
  const int64_t most_bytes = kWindowBytes * pool.size(), most_pairs = kWindowPairs * pool.size();
  int64_t bytes = 0;
  while (bytes < most_bytes && std::ssize(window) < most_pairs) {
    Job job;
    if (!next(job.pair)) break;
    ++counts.pairs;
    if (job.pair.where.empty()) job.pair.where = fmt::format("pair {}", counts.pairs);
    bytes += std::ssize(job.pair.source) + std::ssize(job.pair.target);
    window.push_back(std::move(job));
  }
  return !window.empty();
}

void PairScorer::State::tokenize(Job& job) const {
  for (std::string* text : {&job.pair.source, &job.pair.target}) {
    RepairedText repaired = repair_utf8(*text);
    job.repaired = job.repaired || repaired.changed;
    *text = std::move(repaired.text);
  }
  const bool no_source = is_blank(job.pair.source), no_target = is_blank(job.pair.target);
  if (!no_source) job.tokens.source = source->encode(job.pair.source);
  if (!no_target) job.tokens.target = target->encode(job.pair.target);
  const int64_t most = model->config().max_length - 1;
  job.too_long = std::ssize(job.tokens.source) > most || std::ssize(job.tokens.target) > most;
  job.scored = !job.too_long && !(no_source && no_target);
}

/// Sorts the jobs that are to be scored, the longest first, so that a worker that is left with the
/// last batch has a short one; and cuts them into batches.
std::vector<Range> PairScorer::State::cut(const std::vector<Job>& window,
                                          std::vector<std::size_t>& order) const {
  for (std::size_t i = 0; i < window.size(); ++i) {
    if (window[i].scored) order.push_back(i);
  }
  const auto key = [&](std::size_t i) {
    const TokenPair& pair = window[i].tokens;
    return std::tuple(-std::ssize(pair.target), -std::ssize(pair.source), i);
  };
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  std::vector<Range> batches;
  int64_t cost = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const int64_t more = score_cost(window[order[i]].tokens);
    if (batches.empty() || cost + more > options.batch_tokens) {
      batches.push_back({i, i});
      cost = 0;
    }
    cost += more;
    batches.back().end = i + 1;
  }
  return batches;
}

void PairScorer::State::finish(Job& job, PairScores scores) const {
  Alternative& answer = job.answer.alternative;
  answer.tokens = std::ssize(scores.log_probs);
  for (const float log_prob : scores.log_probs) answer.log_prob += static_cast<double>(log_prob);
  answer.score = length_penalized(answer.log_prob, answer.tokens, options.length_penalty);
  answers.add_details(job.tokens, std::move(scores), job.answer);
}

void PairScorer::State::score_batch(std::vector<Job>& window, std::span<const std::size_t> batch,
                                    int64_t worker) {
  std::vector<TokenPair> pairs;
  pairs.reserve(batch.size());
  for (const std::size_t i : batch) pairs.push_back(window[i].tokens);
  Context context{.memory = &memory[static_cast<std::size_t>(worker)], .compute = model->compute()};
  auto scores = score_pairs(*model, context, pairs, tokens, answers.pass(true));
  for (std::size_t i = 0; i < batch.size(); ++i) finish(window[batch[i]], std::move(scores[i]));
}

void PairScorer::State::score_window(std::vector<Job>& window) {
  std::atomic<std::size_t> next_job = 0, next_batch = 0;
  pool.run([&](int64_t) {
    for (std::size_t first; (first = next_job.fetch_add(kPairsAtOnce)) < window.size();) {
      const std::size_t end = std::min(first + kPairsAtOnce, window.size());
      for (std::size_t i = first; i < end; ++i) tokenize(window[i]);
    }
  });
  std::vector<std::size_t> order;
  const std::vector<Range> batches = cut(window, order);
  pool.run([&](int64_t worker) {
    for (std::size_t i; (i = next_batch.fetch_add(1)) < batches.size();) {
      const auto [first, end] = batches[i];
      score_batch(window, std::span(order).subspan(first, end - first), worker);
    }
  });
}

void PairScorer::State::report(const Job& job, ScoreCounts& counts) const {
  if (job.repaired) {
    ++counts.repaired;
    logger().warn("{}: replaced what is no UTF-8 by U+FFFD", job.pair.where);
  }
  if (job.too_long) {
    ++counts.too_long;
    logger().warn(
        "{}: {} source and {} target tokens; the model takes {} at most of either side, so the "
        "score is -inf",
        job.pair.where, job.tokens.source.size(), job.tokens.target.size(),
        model->config().max_length - 1);
    return;
  }
  counts.target_tokens += job.answer.alternative.tokens;
  counts.log_prob += job.answer.alternative.log_prob;
}

PairScorer::PairScorer(const std::filesystem::path& directory, const PairScorerOptions& options) {
  options.validate();
  const ModelFiles files = load_model_directory(directory);
  check_fit(files.config, *files.source_tokenizer, *files.target_tokenizer);
  state_ = std::make_unique<State>(load_model(files, options.precision), files.source_tokenizer,
                                   files.target_tokenizer, options);
}

PairScorer::PairScorer(std::shared_ptr<const Transformer> model,
                       std::shared_ptr<const Tokenizer> source_tokenizer,
                       std::shared_ptr<const Tokenizer> target_tokenizer,
                       const PairScorerOptions& options) {
  options.validate();
  check_fit(model->config(), *source_tokenizer, *target_tokenizer);
  state_ = std::make_unique<State>(std::move(model), std::move(source_tokenizer),
                                   std::move(target_tokenizer), options);
}

PairScorer::PairScorer(PairScorer&&) noexcept = default;
PairScorer& PairScorer::operator=(PairScorer&&) noexcept = default;
PairScorer::~PairScorer() = default;

int64_t PairScorer::workers() const { return state_->pool.size(); }
DType PairScorer::precision() const { return state_->model->weights(); }

ScoreCounts PairScorer::score_stream(const Next& next, const Sink& sink) {
  ScoreCounts counts;
  std::vector<Job> window;
  while (state_->read_window(next, window, counts)) {
    state_->score_window(window);
    for (Job& job : window) {
      state_->report(job, counts);
      Alternative& answer = job.answer.alternative;
      if (job.too_long) answer.score = answer.log_prob = -std::numeric_limits<double>::infinity();
      answer.text = std::move(job.pair.target);
      sink(answer);
    }
  }
  if (counts.repaired > 0) {
    logger().warn("{} of {} pairs were not UTF-8", counts.repaired, counts.pairs);
  }
  if (counts.too_long > 0) {
    logger().warn("{} of {} pairs were longer than the model's {} tokens and have no score",
                  counts.too_long, counts.pairs, state_->model->config().max_length - 1);
  }
  return counts;
}

std::vector<Alternative> PairScorer::score(const std::vector<GivenPair>& pairs,
                                           ScoreCounts* counts) {
  std::vector<Alternative> answers;
  answers.reserve(pairs.size());
  std::size_t given = 0;
  const ScoreCounts mine = score_stream(
      [&](GivenPair& pair) {
        if (given == pairs.size()) return false;
        pair = pairs[given++];
        return true;
      },
      [&](const Alternative& answer) { answers.push_back(answer); });
  if (counts != nullptr) {
    counts->pairs += mine.pairs;
    counts->repaired += mine.repaired;
    counts->too_long += mine.too_long;
    counts->target_tokens += mine.target_tokens;
    counts->log_prob += mine.log_prob;
  }
  return answers;
}

}  // namespace attend
