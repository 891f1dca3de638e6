#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "attend/models/precision.h"
#include "attend/models/transformer.h"

namespace attend {

class Tokenizer;  // data/tokenizer.h

/// Models that translate together, and the tokenizers that they share; most often one model.
struct Ensemble {
  std::vector<std::shared_ptr<const Transformer>> models;
  std::shared_ptr<const Tokenizer> source_tokenizer;
  std::shared_ptr<const Tokenizer> target_tokenizer;

  /// Tokens of a sentence at most, end of sentence counted: what all models take.
  int64_t max_length() const;
};

/// Loads model directories or run directories. Throws Error as load_model_directory and load_model
/// do, and, naming both directories, where two have different tokenizers. for_shortlist: see
/// load_model.
Ensemble load_ensemble(const std::vector<std::filesystem::path>& directories,
                       InferencePrecision precision, bool for_shortlist = false);

}  // namespace attend
