#include "attend/search/ensemble.h"

#include <algorithm>
#include <limits>

#include "attend/base/error.h"
#include "attend/io/model_directory.h"
#include "attend/search/load_model.h"

namespace attend {
namespace {

void check_same(const char* side, const Tokenizer& first, const std::filesystem::path& first_path,
                const Tokenizer& other, const std::filesystem::path& other_path) {
  if (first.fingerprint() == other.fingerprint()) return;
  fail(
      "{} and {} cannot translate together: their {} tokenizers differ ({} and {} tokens); the "
      "models of an ensemble must be trained with the same tokenizers",
      first_path.string(), other_path.string(), side, first.vocabulary_size(),
      other.vocabulary_size());
}

}  // namespace

int64_t Ensemble::max_length() const {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const auto& model : models) least = std::min(least, model->config().max_length);
  return least;
}

Ensemble load_ensemble(const std::vector<std::filesystem::path>& directories,
                       InferencePrecision precision, bool for_shortlist) {
  if (directories.empty()) fail_usage("no model: expected one directory or more");
  Ensemble ensemble;
  for (const std::filesystem::path& directory : directories) {
    const ModelFiles files = load_model_directory(directory);
    if (ensemble.models.empty()) {
      ensemble.source_tokenizer = files.source_tokenizer;
      ensemble.target_tokenizer = files.target_tokenizer;
    }
    check_same("source", *ensemble.source_tokenizer, directories.front(), *files.source_tokenizer,
               directory);
    check_same("target", *ensemble.target_tokenizer, directories.front(), *files.target_tokenizer,
               directory);
    ensemble.models.push_back(load_model(files, precision, for_shortlist));
  }
  return ensemble;
}

}  // namespace attend
