#include "attend/search/beam_search.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "attend/base/error.h"
#include "attend/search/search_pool.h"

namespace attend {
namespace {

constexpr int64_t kBudgetBeam = 4;  // the beam size that batch_tokens is meant for
constexpr int64_t kLeastCost = 8;   // of a sentence: its output may be longer than its source

void check_sources(std::span<const Transformer* const> models,
                   const std::vector<SearchRequest>& requests) {
  for (const Transformer* model : models) {
    const int64_t most = model->config().max_length - 1;
    for (const SearchRequest& request : requests) {
      if (std::ssize(request.source) > most) {
        fail("a source of {} tokens; the model takes {} and an end of sentence",
             request.source.size(), most);
      }
    }
  }
}

}  // namespace

SearchOptions with_batch_tokens(SearchOptions options, const TransformerConfig& config) {
  constexpr int64_t kSmall = 384, kLarge = 1024, kLargeFrom = int64_t{4} << 20;
  if (options.batch_tokens > 0) return options;
  const int64_t layer = config.d_model * (8 * config.d_model + 2 * config.d_ff);
  options.batch_tokens = config.decoder_layers * layer < kLargeFrom ? kSmall : kLarge;
  return options;
}

int64_t search_cost(int64_t source_tokens, const SearchOptions& options) {
  return std::max(source_tokens + 1, kLeastCost) * options.hypotheses();
}

int64_t search_cost(const SearchRequest& request, const SearchOptions& options) {
  return search_cost(std::ssize(request.source), options);
}

int64_t search_budget(const SearchOptions& options) { return options.batch_tokens * kBudgetBeam; }

int64_t search_memory(const TransformerConfig& config, DType compute,
                      const SearchOptions& options) {
  const int64_t size = size_of(compute);
  // Within the budget, sources of kLeastCost tokens make the most hypotheses. One that costs more
  // is searched by itself.
  const int64_t longest = config.max_length;
  const int64_t budget = search_budget(with_batch_tokens(options, config));
  const int64_t rows = std::max(budget / kLeastCost, options.hypotheses());
  const int64_t slots =
      std::max(budget + budget / kLeastCost * std::min(options.max_extra_length, longest),
               options.hypotheses() * longest);
  const int64_t sources = std::max(budget / options.hypotheses(), longest);

  const int64_t key_value = config.heads * (config.key_width() + config.value_width());
  // Caches have half as much again as is held, and of one layer there are two while it grows.
  const int64_t cached = (slots + sources) * 3 / 2;
  const int64_t caches = (config.decoder_layers + 1) * key_value * size * cached;
  const int64_t activations = 4 * (6 * config.d_model + 2 * config.d_ff + 2 * key_value);
  const int64_t logits_rows = std::min(rows, std::max(kLogitsTileRows, options.hypotheses()));
  const int64_t logits =
      logits_rows * config.target_vocabulary_size * static_cast<int64_t>(sizeof(float));
  return caches + std::max(sources, rows) * activations + 2 * logits;
}

std::vector<std::vector<Hypothesis>> beam_search(std::span<const Transformer* const> models,
                                                 MemoryPool& memory,
                                                 const std::vector<SearchRequest>& requests,
                                                 const SearchTokens& tokens,
                                                 const SearchOptions& options) {
  options.validate();
  check_sources(models, requests);
  std::vector<std::vector<Hypothesis>> results(requests.size());
  std::exception_ptr failed;
  SearchPool pool(models, memory, tokens, options);
  for (std::size_t next = 0; next < requests.size() || !pool.empty();) {
    std::vector<SearchSentence> entering;
    int64_t room = pool.room();
    for (; next < requests.size(); ++next) {
      room -= search_cost(requests[next], options);
      if (room < 0 && !(pool.empty() && entering.empty())) break;
      entering.push_back({requests[next],
                          [&, next](std::vector<Hypothesis> best, const std::exception_ptr& error) {
                            results[next] = std::move(best);
                            if (error) failed = error;
                          }});
    }
    if (!entering.empty()) pool.add(std::move(entering));
    pool.step();
    if (failed) std::rethrow_exception(failed);
  }
  return results;
}

}  // namespace attend
