#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "attend/data/corpus_options.h"
#include "attend/data/corpus_summary.h"
#include "attend/data/token_store.h"
#include "attend/data/tokenizer.h"

namespace attend {

/// One or several parallel corpora as token ids on the disk: in a cache (CorpusCache) that later
/// starts open without reading the text, or in files that end with it. Nothing in memory grows with
/// the text.
///
/// Weights: a corpus of n pairs and weight w gives, in epochs 0 to e, floor((e + 1) · w · n) pairs.
/// They are drawn as an endless row of passes over the corpus, each pass every pair once in an
/// order of its own. So w = 1 is every pair exactly once an epoch, w = 2 exactly twice, and with w
/// = 0.5 two epochs together hold every pair once; after any epoch no pair of a corpus has been
/// seen more than once more often than another.
class ParallelCorpus {
 public:
  /// Opens the cache, or reads, tokenizes and filters. A cache whose writing was interrupted is
  /// gone on with; one that another process writes is waited for. Throws Error: see ParallelReader
  /// and LineReader (files for training must be text), CorpusCache, where the disk is full or will
  /// be, and where no pair is left or a tokenizer lacks BOS or EOS. Throws UsageError for options
  /// that cannot be meant, and StoppedReading.
  static ParallelCorpus load(const CorpusOptions& options, const Tokenizer& source_tokenizer,
                             const Tokenizer& target_tokenizer);

  /// Pairs of all corpora.
  int64_t pairs() const { return store_.size().pairs; }
  /// Where tokens lie, and how many a pair has, EOS not counted. Throws Error for a damaged file.
  const TokenStore& store() const { return store_; }

  /// Of all pairs, EOS not counted.
  int64_t source_tokens() const { return summary_.source_tokens; }
  int64_t target_tokens() const { return summary_.target_tokens; }
  const std::vector<CorpusPart>& parts() const { return summary_.parts; }
  const CorpusSummary& summary() const { return summary_; }
  /// Of all corpora together.
  CorpusReport report() const { return summary_.report(); }

  int32_t source_eos() const { return source_eos_; }
  int32_t target_bos() const { return target_bos_; }
  int32_t target_eos() const { return target_eos_; }
  /// Of all token ids, in order, and where a corpus ends: whether two runs see the same data. It
  /// begins with kFingerprintVersion.
  std::string fingerprint() const;
  /// How fingerprints are made, and epochs shuffled.
  static constexpr std::string_view kFingerprintVersion = "3-";

 private:
  ParallelCorpus(TokenStore store, CorpusSummary summary, const CorpusOptions& options,
                 const Tokenizer& source_tokenizer, const Tokenizer& target_tokenizer);

  TokenStore store_;
  CorpusSummary summary_;
  int32_t source_eos_;
  int32_t target_bos_;
  int32_t target_eos_;
};

/// Bytes that a cache of so much takes on the disk.
int64_t cache_bytes(const CorpusSummary& summary, const Tokenizer& source_tokenizer,
                    const Tokenizer& target_tokenizer);

/// Whether the cache that `options` name is there and complete. Changes nothing on the disk.
bool has_complete_cache(const CorpusOptions& options, const Tokenizer& source_tokenizer,
                        const Tokenizer& target_tokenizer);

}  // namespace attend
