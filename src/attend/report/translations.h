#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "attend/data/parallel_text.h"
#include "attend/report/report.h"
#include "attend/report/run_facts.h"

namespace attend {

class Tokenizer;    // data/tokenizer.h
class Transformer;  // models/transformer.h

/// A text with its references, and where it is from.
struct ScoredText {
  std::string what;   ///< "validation" or "test"
  std::string files;  ///< "val.en and val.de"
  ParallelText lines;
};

/// The validation text that a run's recipe names; a note says why there is none.
std::optional<ScoredText> validation_text(const ReportedRun& run, Notes& notes);
/// The text of --test-source and --test-target; none where they are not given. Throws Error.
std::optional<ScoredText> test_text(const ReportOptions& options);

/// A run's model, and what it made of a text.
class RunModel {
 public:
  /// Nothing, and a note, where the run has no model that can be used.
  static std::unique_ptr<RunModel> open(const ReportedRun& run, const ReportOptions& options,
                                        Notes& notes);

  std::vector<std::string> translate(const std::vector<std::string>& lines) const;
  /// Every layer's and head's weights, in thousandths, with the tokens along both axes; null where
  /// a side is too long to be looked at.
  nlohmann::ordered_json attention(const std::string& source, const std::string& target) const;

 private:
  std::shared_ptr<const Transformer> model_;
  std::shared_ptr<const Tokenizer> source_tokenizer_;
  std::shared_ptr<const Tokenizer> target_tokenizer_;
  int64_t beam_size_ = 0;
  double length_penalty_ = 0;
  int64_t workers_ = 0;
};

/// BLEU, chrF2 and TER with their signatures.
nlohmann::ordered_json scores_of(const ScoredText& text,
                                 const std::vector<std::string>& translations,
                                 const BleuOptions& bleu);

}  // namespace attend
