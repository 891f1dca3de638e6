#pragma once

#include <atomic>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "attend/base/files.h"
#include "attend/data/corpus_options.h"
#include "attend/data/corpus_summary.h"
#include "attend/data/token_store.h"
#include "attend/data/tokenizer.h"

namespace attend {

/// A corpus as token ids on the disk, written by the first start and read by all later ones: the
/// folder `<cache>/<key>/` with the files of a TokenStore and `cache.json`, which says what they
/// hold and what they were made of.
///
/// The key is of the text files' names, the tokenizers and the filter's options. Sizes and times of
/// the files stand in cache.json: where they have changed, the cache is written anew in its place,
/// so that outdated ones do not pile up. cache.json is replaced last (AtomicFile), when what it
/// speaks of is on the disk: it is true at any moment at which the process may be killed.
class CorpusCache {
 public:
  /// What cache.json says.
  struct State {
    CorpusSummary summary;
    bool complete = false;  ///< else the beginning of the text, to be gone on with
  };

  /// Touches nothing on the disk. Throws Error where a text file is missing.
  CorpusCache(const CorpusOptions& options, const Tokenizer& source, const Tokenizer& target);

  const Path& folder() const { return folder_; }
  /// What is there: nothing, a state, or a problem that keeps it from being used.
  struct Found {
    std::optional<State> state = {};
    std::string problem = {};
  };
  Found find() const;
  /// The store of a complete cache. Throws Error where it is damaged.
  TokenStore open(const State& state) const;
  /// The store of a cache to be gone on with, or an empty one, with the state set to match. Only
  /// for a holder of the lock.
  TokenStore open_for_writing(State& state) const;
  void save(const State& state) const;
  /// Waits until no other process writes the cache, and says so. Throws StoppedReading.
  FileLock lock(const std::atomic<bool>* stop) const;
  /// Throws Error where a text file has changed since the constructor.
  void check_unchanged() const;

 private:
  TokenStore open_store(const State& state, TokenStore::Mode mode) const;

  Path folder_;
  std::vector<std::string> paths_;
  Vocabularies vocabularies_;
  nlohmann::json key_;
  nlohmann::json inputs_;  ///< name, size and time of every text file
};

}  // namespace attend
