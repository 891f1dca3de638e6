#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "attend/data/text.h"
#include "attend/models/config.h"
#include "attend/models/precision.h"
#include "attend/search/alternative.h"
#include "attend/search/options.h"

namespace attend {

class Tokenizer;    // data/tokenizer.h
class Transformer;  // models/transformer.h

struct TranslatorOptions {
  SearchOptions search;
  /// Words, phrases or pieces that never come, see with_suppressed.
  std::vector<std::string> suppress;
  /// Threads, each with whole sentences of its own; 0: one a core.
  int64_t workers = 0;
  /// For models from a directory; a model in memory has its own.
  InferencePrecision precision = InferencePrecision::kAuto;
  /// Bytes that each worker keeps at most, and then only while it has work; 0: no limit. What one
  /// search takes is bounded by search.batch_tokens.
  int64_t worker_memory = 0;
  /// A file of Shortlist::save; empty: none.
  std::string shortlist = {};
  DetailOptions details;
  void validate() const;  ///< throws UsageError naming the option
};

/// What was made of a line: its n_best best translations, best first, at least one. A blank line
/// has one, which is empty. Of a line in pieces, the i-th joins the i-th of each piece.
struct Translation {
  std::vector<Alternative> alternatives;
  const std::string& text() const { return alternatives.front().text; }
  double score() const { return alternatives.front().score; }
};

/// What happened to the lines of one call.
struct TranslationCounts {
  int64_t lines = 0;
  int64_t blank = 0;          ///< empty, or white space alone
  int64_t repaired = 0;       ///< had bytes that are no UTF-8
  int64_t split = 0;          ///< were longer than the model's max_length
  int64_t source_tokens = 0;  ///< end of sentence counted, like the target's
  int64_t target_tokens = 0;  ///< of the best translations
};

/// What the translation of one line must hold, as text.
struct LineConstraints {
  std::string prefix;                 ///< it begins with this; empty: with anything
  std::vector<std::string> required;  ///< words or phrases that are somewhere in it
};

/// Gives what the translation of the next line must hold; see Translator::translate_stream.
using NextConstraints = std::function<LineConstraints()>;

/// Translates lines of text. Const and safe to use from many threads at once: all callers share its
/// workers, and sentences of different callers may be searched together (contract 6: nobody can
/// tell).
///
/// N lines give N translations in order; a blank line gives an empty one (contract 1). What is no
/// UTF-8 becomes U+FFFD, with a warning naming the line (contract 4). A line of more tokens than
/// the model's max_length is translated in pieces, split at sentence ends where there are any, else
/// at spaces, else anywhere, joined with single spaces, with a warning naming the line (contract
/// 3). A translation never contains '\n'.
class Translator {
 public:
  /// A model directory or a run directory. Throws Error as load_model_directory and load_weights
  /// do, and UsageError for bad options.
  Translator(const std::filesystem::path& directory, const TranslatorOptions& options);
  /// An ensemble: models with the same tokenizers, which choose each token by the mean of their
  /// probabilities. Throws as well, naming both, where tokenizers differ.
  Translator(const std::vector<std::filesystem::path>& directories,
             const TranslatorOptions& options);
  /// A model in memory, e.g. for validation. Its weights must not change while lines are in work.
  Translator(std::shared_ptr<const Transformer> model,
             std::shared_ptr<const Tokenizer> source_tokenizer,
             std::shared_ptr<const Tokenizer> target_tokenizer, const TranslatorOptions& options);
  Translator(Translator&&) noexcept;
  Translator& operator=(Translator&&) noexcept;
  ~Translator();

  const TransformerConfig& config() const;  ///< of the first model
  DType precision() const;                  ///< of the first one's weights, after `auto`
  int64_t workers() const;

  /// Adds to `counts` where it is given. Warnings say "line N", from 1.
  std::vector<Translation> translate(const std::vector<std::string>& lines,
                                     TranslationCounts* counts = nullptr) const;
  /// constraints: one a line. Of a line that is translated in pieces they are the first piece's; a
  /// blank line's do not count. Throws Error, naming the line, where they cannot be met.
  std::vector<Translation> translate(const std::vector<std::string>& lines,
                                     const std::vector<LineConstraints>& constraints,
                                     TranslationCounts* counts = nullptr) const;
  Translation translate_line(const std::string& line) const;

  /// Receives the translations one by one, in the order of the lines, on the caller's thread.
  using Sink = std::function<void(const Translation&)>;
  /// Translates all that `reader` gives. A bounded number of tokens is in work at any time, so that
  /// memory does not grow with the input; nothing waits for a full batch, so that a line typed into
  /// a pipe is answered before the next is read. The reader is used on another thread until this
  /// returns. Warnings say "<reader's name>, line N". Where the reader or the sink throws, that
  /// comes out of here; after a reader's error all lines before it have been given to the sink.
  /// After a sink's error, this returns when the reader has given its next line.
  /// `constraints`, where it is given, is called once for each line, after the reader and on its
  /// thread; what it throws counts as a reader's error.
  TranslationCounts translate_stream(LineReader& reader, const Sink& sink,
                                     const NextConstraints& constraints = {}) const;
  /// The same of lines that come from anywhere, whose warnings say "line N". A '\n' within one is a
  /// character of its text.
  TranslationCounts translate_stream(const NextLine& next_line, const Sink& sink,
                                     const NextConstraints& constraints = {}) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attend
