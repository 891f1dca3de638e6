#include "attend/search/answers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "attend/data/tokenizer.h"
#include "attend/search/alignment.h"
#include "attend/search/text_model.h"

namespace attend {
namespace {

int32_t count_words(const std::vector<int32_t>& words) {
  return words.empty() ? 0 : words.back() + 1;
}

template <typename T>
void append(std::vector<T>& to, std::vector<T> more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

AnswerMaker::AnswerMaker(std::shared_ptr<const Transformer> model,
                         std::shared_ptr<const Tokenizer> source,
                         std::shared_ptr<const Tokenizer> target, const DetailOptions& details)
    : model_(std::move(model)),
      source_(std::move(source)),
      target_(std::move(target)),
      details_(details),
      layer_(alignment_layer(details.alignment_layer, model_->config().decoder_layers)) {}

ForcedPass AnswerMaker::pass(bool log_probs) const {
  return {.log_probs = log_probs, .attention_layer = details_.need_attention() ? layer_ : -1};
}

void AnswerMaker::add_details(const TokenPair& pair, PairScores scores, Answer& answer) const {
  Alternative& alternative = answer.alternative;
  if (details_.tokens || details_.attention) {
    alternative.target_pieces = pieces_of(*target_, pair.target);
  }
  if (details_.tokens) alternative.token_log_probs = std::move(scores.log_probs);
  if (details_.alignments) {
    const std::vector<int32_t> source_words = words_of(*source_, pair.source);
    const std::vector<int32_t> target_words = words_of(*target_, pair.target);
    alternative.alignment = align_words(scores.attention, source_words, target_words);
    answer.source_words = count_words(source_words);
    answer.target_words = count_words(target_words);
  }
  if (details_.attention) {
    alternative.source_pieces = pieces_of(*source_, pair.source);
    alternative.attention = std::move(scores.attention);
  }
}

std::vector<PairScores> AnswerMaker::attend(const std::vector<TokenPair>& pairs) const {
  if (!details_.need_attention()) return std::vector<PairScores>(pairs.size());
  MemoryPool memory;
  Context context{.memory = &memory, .compute = model_->compute()};
  return score_pairs(*model_, context, pairs, search_tokens(*source_, *target_), pass(false));
}

std::vector<Answer> AnswerMaker::from_search(const std::vector<int32_t>& source,
                                             std::vector<Hypothesis> best) const {
  std::vector<TokenPair> pairs;
  for (Hypothesis& hypothesis : best) pairs.push_back({source, std::move(hypothesis.tokens)});
  std::vector<PairScores> scores = attend(pairs);
  std::vector<Answer> answers(best.size());
  for (std::size_t i = 0; i < best.size(); ++i) {
    Alternative& alternative = answers[i].alternative;
    alternative.text = target_->decode(pairs[i].target);
    // A line is a line, even where a model puts out the byte of a line's end.
    std::replace(alternative.text.begin(), alternative.text.end(), '\n', ' ');
    alternative.log_prob = best[i].log_prob;
    alternative.score = best[i].score;
    alternative.tokens = std::ssize(pairs[i].target) + 1;
    scores[i].log_probs = std::move(best[i].token_log_probs);
    add_details(pairs[i], std::move(scores[i]), answers[i]);
  }
  return answers;
}

Alternative join(std::vector<Answer> pieces) {
  if (pieces.empty()) return {};
  Alternative joined = std::move(pieces.front().alternative);
  int32_t source_words = pieces.front().source_words, target_words = pieces.front().target_words;
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    Alternative& next = pieces[i].alternative;
    joined.text += ' ' + next.text;
    joined.log_prob += next.log_prob;
    joined.score += next.score;
    joined.tokens += next.tokens;
    append(joined.target_pieces, std::move(next.target_pieces));
    append(joined.source_pieces, std::move(next.source_pieces));
    append(joined.token_log_probs, std::move(next.token_log_probs));
    append(joined.attention, std::move(next.attention));
    for (const WordLink& link : next.alignment) {
      joined.alignment.push_back({link.source + source_words, link.target + target_words});
    }
    source_words += pieces[i].source_words;
    target_words += pieces[i].target_words;
  }
  return joined;
}

}  // namespace attend
