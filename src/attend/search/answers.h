#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "attend/search/alternative.h"
#include "attend/search/hypothesis.h"
#include "attend/search/score.h"

namespace attend {

class Tokenizer;  // data/tokenizer.h

/// An answer for one piece of a line. Words are counted where alignments are asked for, so that
/// those of the pieces behind it can go on counting.
struct Answer {
  Alternative alternative;
  int32_t source_words = 0;
  int32_t target_words = 0;
};

/// Puts into words what a model says in tokens. Const, and safe to use from many threads.
class AnswerMaker {
 public:
  /// Throws UsageError where the model has no such layer as `details` asks for.
  AnswerMaker(std::shared_ptr<const Transformer> model, std::shared_ptr<const Tokenizer> source,
              std::shared_ptr<const Tokenizer> target, const DetailOptions& details);

  /// What a search found for one source, best first. Attention takes a pass of the model: call it
  /// from a thread that has called prepare_compute_thread(). Throws as score_pairs.
  std::vector<Answer> from_search(const std::vector<int32_t>& source,
                                  std::vector<Hypothesis> best) const;

  /// What a pass has to find for add_details.
  ForcedPass pass(bool log_probs) const;
  /// Fills in what the options ask for.
  void add_details(const TokenPair& pair, PairScores scores, Answer& answer) const;

 private:
  std::vector<PairScores> attend(const std::vector<TokenPair>& pairs) const;

  std::shared_ptr<const Transformer> model_;
  std::shared_ptr<const Tokenizer> source_;
  std::shared_ptr<const Tokenizer> target_;
  DetailOptions details_;
  int64_t layer_;
};

/// The answers for a line's pieces, joined with spaces: texts, sums of the scores, details one
/// after the other. No pieces make an empty answer.
Alternative join(std::vector<Answer> pieces);

}  // namespace attend
