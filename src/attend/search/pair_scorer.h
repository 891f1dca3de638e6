#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "attend/models/precision.h"
#include "attend/search/alternative.h"

namespace attend {

class Tokenizer;    // data/tokenizer.h
class Transformer;  // models/transformer.h

struct PairScorerOptions {
  double length_penalty = 0.6;  ///< as SearchOptions::length_penalty
  /// Tokens of both sides that a worker runs at once. It bounds memory; the scores do not depend on
  /// it. A pair that is longer by itself is run by itself.
  int64_t batch_tokens = 4096;
  int64_t workers = 0;  ///< threads; 0: one a core
  /// For models from a directory; a model in memory has its own.
  InferencePrecision precision = InferencePrecision::kAuto;
  DetailOptions details;
  void validate() const;  ///< throws UsageError naming the option
};

/// A source and what is to be scored as its translation.
struct GivenPair {
  std::string source;
  std::string target;
  std::string where;  ///< for warnings, e.g. "line 3"
};

/// What happened to the pairs of one call.
struct ScoreCounts {
  int64_t pairs = 0;
  int64_t repaired = 0;       ///< had bytes that are no UTF-8
  int64_t too_long = 0;       ///< had a side of more tokens than the model takes
  int64_t target_tokens = 0;  ///< that were scored, ends of sentence counted
  double log_prob = 0;        ///< of all that were scored

  double perplexity() const;  ///< exp(-log_prob / target_tokens); 1 where there are none
};

/// Scores given translations: log P(target, end of sentence | source), token by token, as the
/// search counts it. Every answer is an Alternative with the given target as its text.
///
/// What is no UTF-8 becomes U+FFFD, with a warning naming the pair (contract 4). A side that is
/// empty or white space alone has no tokens: of a blank target, the end of sentence is scored; of a
/// pair that is blank on both sides, nothing, and the score is 0, as a translator makes a blank
/// line of a blank line. To a pair with a side that is longer than the model's max_length, the
/// model gives no probability: the score is minus infinity, with a warning naming the pair, and
/// nothing is added to the totals (contract 3). The scores of a pair do not depend on the others,
/// nor on workers or batches, to the bit (contract 6).
///
/// One call at a time.
class PairScorer {
 public:
  /// A model directory or a run directory. Throws Error as load_model_directory and load_weights
  /// do, and UsageError for bad options.
  PairScorer(const std::filesystem::path& directory, const PairScorerOptions& options);
  /// A model in memory.
  PairScorer(std::shared_ptr<const Transformer> model,
             std::shared_ptr<const Tokenizer> source_tokenizer,
             std::shared_ptr<const Tokenizer> target_tokenizer, const PairScorerOptions& options);
  PairScorer(PairScorer&&) noexcept;
  PairScorer& operator=(PairScorer&&) noexcept;
  ~PairScorer();

  int64_t workers() const;
  DType precision() const;  ///< of the weights, after `auto`

  /// Gives the next pair; false at the end.
  using Next = std::function<bool(GivenPair&)>;
  /// Receives the answers, in the order of the pairs.
  using Sink = std::function<void(const Alternative&)>;
  /// Scores all that `next` gives, in windows, so that memory does not grow with their number. Both
  /// are called on the caller's thread. Where one of them throws, that comes out of here.
  ScoreCounts score_stream(const Next& next, const Sink& sink);

  /// Warnings say "pair N", from 1, where a pair has no `where`. Adds to `counts` where it is
  /// given.
  std::vector<Alternative> score(const std::vector<GivenPair>& pairs,
                                 ScoreCounts* counts = nullptr);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attend
