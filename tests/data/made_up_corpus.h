#pragma once

#include <string>
#include <utility>
#include <vector>

#include "attend/data/batches.h"
#include "tests/data/test_files.h"

namespace attend {

/// A corpus of so many made-up pairs for each size, with that weight.
inline ParallelCorpus corpus_of(const std::vector<std::pair<int, double>>& sizes_and_weights) {
  TestFolder folder;
  CorpusOptions options;
  for (const auto& [size, weight] : sizes_and_weights) {
    const auto source = made_up_lines(size, 10 + options.corpora.size());
    const auto target = made_up_lines(size, 20 + options.corpora.size());
    std::string tsv;
    for (int i = 0; i < size; ++i) tsv += source[i] + "\t" + target[i] + "\n";
    const std::string name = std::to_string(options.corpora.size()) + ".tsv";
    options.corpora.push_back({.tsv = folder.write(name, tsv), .weight = weight});
  }
  options.max_length_ratio = 0;
  return ParallelCorpus::load(options, small_tokenizer(), small_tokenizer());
}

inline const ParallelCorpus& thousand() {
  static const ParallelCorpus corpus = corpus_of({{1000, 1.0}});
  return corpus;
}

inline std::vector<StoredPair> stored(const ParallelCorpus& corpus,
                                      const std::vector<int64_t>& pairs) {
  std::vector<StoredPair> found;
  for (const int64_t pair : pairs) found.push_back(corpus.store().pair(pair));
  return found;
}

}  // namespace attend
