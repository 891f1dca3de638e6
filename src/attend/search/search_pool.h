#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "attend/search/beam.h"
#include "attend/search/decoder_caches.h"
#include "attend/search/step_scores.h"

namespace attend {

/// A sentence on its way through a search.
struct SearchSentence {
  SearchRequest request;
  /// Called once, on the searching thread, with the hypotheses or what went wrong. Must not throw.
  std::function<void(std::vector<Hypothesis> best, std::exception_ptr error)> done;
};

/// One that is being searched.
struct ActiveSentence {
  explicit ActiveSentence(Beam the_beam) : beam(std::move(the_beam)) {}

  Beam beam;
  MemoryRange range;
  std::vector<int32_t> listed;  ///< by the shortlist, where there is one
  int64_t cost = 0;
  SearchSentence sentence;
  std::exception_ptr error;
};

/// So many rows' logits exist at once, or those of one sentence.
inline constexpr int64_t kLogitsTileRows = 128;

/// Sentences that one thread searches together. Every step runs their active hypotheses at once, a
/// row each, all of a sentence's or a part (see Beam::next_turn); between steps those that are done
/// leave, and others may enter.
class SearchPool {
 public:
  /// models: an ensemble, one or more. The tokens must outlive this.
  SearchPool(std::span<const Transformer* const> models, MemoryPool& memory,
             const SearchTokens& tokens, const SearchOptions& options);
  SearchPool(const SearchPool&) = delete;
  SearchPool& operator=(const SearchPool&) = delete;

  bool empty() const { return active_.empty(); }
  /// What the sentences in it cost, see search_cost.
  int64_t cost() const { return cost_; }
  /// What may be added; whatever comes first where it is empty. Nothing while there is little room:
  /// sentences enter several at a time, so that the encoder's products have rows enough.
  int64_t room() const;
  void add(std::vector<SearchSentence> sentences);
  /// A turn of every sentence: one token more for its hypotheses, where it is the last of a step.
  void step();
  /// Gives up the memory of an empty pool.
  void release();

 private:
  void admit(std::vector<SearchSentence>& sentences);
  std::vector<int32_t> take_ranges(std::size_t before);
  void fill_step();
  void run_models();
  std::span<float> attention_buffer(std::size_t model);
  void advance();
  void advance_tile(std::size_t first, std::size_t end, int64_t first_row, int64_t end_row);
  int64_t tile_width(std::size_t first, std::size_t end) const;
  void remove_done();
  void fail_all(const std::exception_ptr& error);

  const SearchTokens& tokens_;
  SearchOptions options_;
  std::vector<PoolModel> models_;
  DecoderCaches caches_;
  StepScorer scorer_;
  std::vector<std::unique_ptr<ActiveSentence>> active_;
  int64_t cost_ = 0;

  // A step's, kept from one to the next for their memory.
  DecodingStep step_;
  std::shared_ptr<std::vector<int64_t>> row_offsets_;
  std::shared_ptr<std::vector<int32_t>> positions_;
  std::vector<Tensor> hidden_;  ///< of each model, [rows, d_model]
  std::vector<Tensor> tile_;    ///< some of their rows
  /// Of each model, every row's attention to its source, row after row; the mean in the first's.
  /// Empty unless the beams ask for it.
  std::vector<Tensor> attention_;
  std::vector<int64_t> attention_offsets_;  ///< where each row's begins
};

}  // namespace attend
