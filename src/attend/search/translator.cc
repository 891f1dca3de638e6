#include "attend/search/translator.h"

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/data/text.h"
#include "attend/data/tokenizer.h"
#include "attend/search/answers.h"
#include "attend/search/ensemble.h"
#include "attend/search/line_constraints.h"
#include "attend/search/line_queue.h"
#include "attend/search/long_lines.h"
#include "attend/search/search_workers.h"
#include "attend/search/shortlist.h"
#include "attend/search/text_model.h"

namespace attend {
namespace {

constexpr int64_t kGroupsInWork = 8;  // a worker's, of a stream: lines read ahead to choose from
constexpr std::size_t kAddAtOnce = 1024;  // lines that are encoded before the workers see them

SearchTokens tokens_of(const Tokenizer& source, const Tokenizer& target,
                       const TranslatorOptions& options) {
  SearchTokens tokens = with_suppressed(search_tokens(source, target), options.suppress, target);
  if (!options.shortlist.empty()) {
    tokens.shortlist =
        std::make_shared<const Shortlist>(Shortlist::load(options.shortlist, source, target));
  }
  return tokens;
}

Translation join_pieces(LineQueue::Pieces pieces) {
  std::size_t count = 1;
  for (const std::vector<Answer>& best : pieces) count = std::max(count, best.size());
  Translation translation;
  for (std::size_t rank = 0; rank < count; ++rank) {
    std::vector<Answer> answers;
    for (std::vector<Answer>& best : pieces) {
      answers.push_back(best[std::min(rank, best.size() - 1)]);
    }
    translation.alternatives.push_back(join(std::move(answers)));
  }
  return translation;
}

void add(const TranslationCounts& counts, TranslationCounts& to) {
  to.lines += counts.lines;
  to.blank += counts.blank;
  to.repaired += counts.repaired;
  to.split += counts.split;
  to.source_tokens += counts.source_tokens;
  to.target_tokens += counts.target_tokens;
}

}  // namespace

void TranslatorOptions::validate() const {
  search.validate();
  check_workers(workers);
}

struct Translator::State {
  State(Ensemble ensemble, const TranslatorOptions& the_options)
      : max_length(ensemble.max_length()),
        models(std::move(ensemble.models)),
        source_tokenizer(std::move(ensemble.source_tokenizer)),
        target_tokenizer(std::move(ensemble.target_tokenizer)),
        search(with_batch_tokens(the_options.search, models.front()->config())),
        tokens(tokens_of(*source_tokenizer, *target_tokenizer, the_options)),
        answers(models.front(), source_tokenizer, target_tokenizer, the_options.details),
        workers(models, tokens, search, worker_count(the_options.workers),
                the_options.worker_memory) {}

  int64_t max_length;
  std::vector<std::shared_ptr<const Transformer>> models;
  std::shared_ptr<const Tokenizer> source_tokenizer;
  std::shared_ptr<const Tokenizer> target_tokenizer;
  SearchOptions search;
  SearchTokens tokens;
  AnswerMaker answers;
  SearchWorkers workers;  ///< last: they use the others to their end

  /// Where a stream's lines come from, and what warnings call them.
  struct Lines {
    const NextLine& next;
    const NextConstraints& constraints;  ///< may be empty
    std::string prefix;                  ///< of "line N"
    int64_t before_them = 0;             ///< lines that were read before
  };

  std::vector<std::vector<int32_t>> prepare(const std::string& line, const std::string& where,
                                            TranslationCounts& counts) const;
  std::vector<std::vector<int32_t>> encode(std::string_view text, const std::string& where,
                                           TranslationCounts& counts) const;
  std::vector<SearchRequest> make_requests(std::vector<std::vector<int32_t>> pieces,
                                           const LineConstraints& constraints,
                                           const std::string& where) const;
  bool add(const std::shared_ptr<LineQueue>& queue, std::vector<SearchRequest> pieces,
           int64_t most_cost, std::vector<SearchSentence>& sentences) const;
  void add_all(const std::vector<std::string>& lines,
               const std::vector<LineConstraints>& constraints,
               const std::shared_ptr<LineQueue>& queue, TranslationCounts& counts);
  void read_all(const Lines& lines, const std::shared_ptr<LineQueue>& queue,
                TranslationCounts& counts);
  TranslationCounts stream(const Lines& lines, const Sink& sink);
  void warn_of_totals(const TranslationCounts& counts) const;
};

/// The tokens of a line's pieces; none of a blank one.
std::vector<std::vector<int32_t>> Translator::State::prepare(const std::string& line,
                                                             const std::string& where,
                                                             TranslationCounts& counts) const {
  ++counts.lines;
  if (valid_utf8(line)) return encode(line, where, counts);
  ++counts.repaired;
  logger().warn("{}: replaced what is no UTF-8 by U+FFFD", where);
  return encode(repair_utf8(line).text, where, counts);
}

std::vector<std::vector<int32_t>> Translator::State::encode(std::string_view text,
                                                            const std::string& where,
                                                            TranslationCounts& counts) const {
  const int64_t max_tokens = max_length - 1;  // the end of sentence comes on top
  auto pieces = encode_in_pieces(*source_tokenizer, text, max_tokens);
  if (pieces.empty()) ++counts.blank;
  if (pieces.size() > 1) {
    ++counts.split;
    logger().warn("{}: longer than the model's {} tokens; translated in {} pieces", where,
                  max_tokens, pieces.size());
  }
  for (const std::vector<int32_t>& piece : pieces) counts.source_tokens += std::ssize(piece) + 1;
  return pieces;
}

void Translator::State::warn_of_totals(const TranslationCounts& counts) const {
  if (counts.repaired > 0) {
    logger().warn("{} of {} lines were not UTF-8", counts.repaired, counts.lines);
  }
  if (counts.split > 0) {
    logger().warn("{} of {} lines were longer than the model's {} tokens; translated in pieces",
                  counts.split, counts.lines, max_length - 1);
  }
}

/// The first piece has the constraints.
std::vector<SearchRequest> Translator::State::make_requests(
    std::vector<std::vector<int32_t>> pieces, const LineConstraints& constraints,
    const std::string& where) const {
  std::vector<SearchRequest> requests;
  for (std::vector<int32_t>& piece : pieces) {
    requests.push_back({.source = std::move(piece), .constraints = {}});
  }
  if (!requests.empty() && !(constraints.prefix.empty() && constraints.required.empty())) {
    requests[0].constraints = encode_constraints(constraints, *target_tokenizer, where);
    check_request(requests[0], max_length - 1, tokens, search, where);
  }
  return requests;
}

/// Puts a line in the queue and its pieces in `sentences`; false where nobody waits for it.
bool Translator::State::add(const std::shared_ptr<LineQueue>& queue,
                            std::vector<SearchRequest> pieces, int64_t most_cost,
                            std::vector<SearchSentence>& sentences) const {
  int64_t cost = 1;
  for (const SearchRequest& piece : pieces) cost += search_cost(piece, search);
  LineQueue::Line* line = queue->add(pieces.size(), cost, most_cost);
  if (line == nullptr) return false;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    auto done = [this, queue, line, i, source = pieces[i].source](std::vector<Hypothesis> best,
                                                                  std::exception_ptr error) {
      std::vector<Answer> found;
      try {
        if (!error) found = answers.from_search(source, std::move(best));
      } catch (...) {
        error = std::current_exception();
      }
      queue->finish_piece(*line, i, std::move(found), error);
    };
    sentences.push_back({.request = std::move(pieces[i]), .done = std::move(done)});
  }
  return true;
}

/// constraints: one a line, or none at all.
void Translator::State::add_all(const std::vector<std::string>& lines,
                                const std::vector<LineConstraints>& constraints,
                                const std::shared_ptr<LineQueue>& queue,
                                TranslationCounts& counts) {
  std::vector<SearchSentence> sentences;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string where = fmt::format("line {}", i + 1);
    auto requests = make_requests(prepare(lines[i], where, counts),
                                  constraints.empty() ? LineConstraints() : constraints[i], where);
    add(queue, std::move(requests), std::numeric_limits<int64_t>::max(), sentences);
    if (i + 1 < lines.size() && sentences.size() < kAddAtOnce) continue;
    workers.submit(std::exchange(sentences, {}));
  }
  queue->end();
}

void Translator::State::read_all(const Lines& lines, const std::shared_ptr<LineQueue>& queue,
                                 TranslationCounts& counts) {
  const int64_t most_cost = kGroupsInWork * workers.count() * search_budget(search);
  try {
    std::vector<SearchSentence> sentences;
    for (std::string line; lines.next(line);) {
      const int64_t number = lines.before_them + counts.lines + 1;
      const std::string where = fmt::format("{}line {}", lines.prefix, number);
      auto requests =
          make_requests(prepare(line, where, counts),
                        lines.constraints ? lines.constraints() : LineConstraints(), where);
      if (!add(queue, std::move(requests), most_cost, sentences)) return;
      workers.submit(std::exchange(sentences, {}));
    }
    queue->end();
  } catch (...) {
    queue->end(std::current_exception());
  }
}

namespace {

Ensemble checked(Ensemble ensemble) {
  for (const auto& model : ensemble.models) {
    check_fit(model->config(), *ensemble.source_tokenizer, *ensemble.target_tokenizer);
  }
  return ensemble;
}

}  // namespace

Translator::Translator(const std::filesystem::path& directory, const TranslatorOptions& options)
    : Translator(std::vector<std::filesystem::path>{directory}, options) {}

Translator::Translator(const std::vector<std::filesystem::path>& directories,
                       const TranslatorOptions& options) {
  options.validate();
  const bool for_shortlist = !options.shortlist.empty();
  state_ = std::make_unique<State>(
      checked(load_ensemble(directories, options.precision, for_shortlist)), options);
}

Translator::Translator(std::shared_ptr<const Transformer> model,
                       std::shared_ptr<const Tokenizer> source_tokenizer,
                       std::shared_ptr<const Tokenizer> target_tokenizer,
                       const TranslatorOptions& options) {
  options.validate();
  Ensemble ensemble{{std::move(model)}, std::move(source_tokenizer), std::move(target_tokenizer)};
  state_ = std::make_unique<State>(checked(std::move(ensemble)), options);
}

Translator::Translator(Translator&&) noexcept = default;
Translator& Translator::operator=(Translator&&) noexcept = default;
Translator::~Translator() = default;

const TransformerConfig& Translator::config() const { return state_->models.front()->config(); }
DType Translator::precision() const { return state_->models.front()->weights(); }
int64_t Translator::workers() const { return state_->workers.count(); }

std::vector<Translation> Translator::translate(const std::vector<std::string>& lines,
                                               TranslationCounts* counts) const {
  return translate(lines, std::vector<LineConstraints>(), counts);
}

std::vector<Translation> Translator::translate(const std::vector<std::string>& lines,
                                               const std::vector<LineConstraints>& constraints,
                                               TranslationCounts* counts) const {
  if (!constraints.empty() && constraints.size() != lines.size()) {
    fail_usage("{} lines with constraints for {}; expected as many, or none", lines.size(),
               constraints.size());
  }
  const auto queue = std::make_shared<LineQueue>();
  TranslationCounts mine;
  state_->add_all(lines, constraints, queue, mine);
  std::vector<Translation> translations;
  translations.reserve(lines.size());
  while (auto pieces = queue->next()) {
    translations.push_back(join_pieces(std::move(*pieces)));
    mine.target_tokens += translations.back().alternatives.front().tokens;
  }
  state_->warn_of_totals(mine);
  if (counts != nullptr) add(mine, *counts);
  return translations;
}

Translation Translator::translate_line(const std::string& line) const {
  return std::move(translate({line}).front());
}

TranslationCounts Translator::State::stream(const Lines& lines, const Sink& sink) {
  const auto queue = std::make_shared<LineQueue>();
  TranslationCounts read, counts;
  std::thread reading([&] { read_all(lines, queue, read); });
  std::exception_ptr error;
  try {
    while (auto pieces = queue->next()) {
      const Translation translation = join_pieces(std::move(*pieces));
      counts.target_tokens += translation.alternatives.front().tokens;
      sink(translation);
    }
  } catch (...) {
    error = std::current_exception();
  }
  queue->close();
  reading.join();
  attend::add(read, counts);
  warn_of_totals(counts);
  if (error) std::rethrow_exception(error);
  return counts;
}

TranslationCounts Translator::translate_stream(LineReader& reader, const Sink& sink,
                                               const NextConstraints& constraints) const {
  const NextLine next = [&](std::string& line) { return reader.next(line); };
  return state_->stream({next, constraints, reader.name() + ", ", reader.line_number()}, sink);
}

TranslationCounts Translator::translate_stream(const NextLine& next_line, const Sink& sink,
                                               const NextConstraints& constraints) const {
  return state_->stream({next_line, constraints, "", 0}, sink);
}

}  // namespace attend
