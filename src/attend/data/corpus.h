#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "attend/data/parallel_text.h"
#include "attend/data/token_store.h"
#include "attend/data/tokenizer.h"

namespace attend {

struct CorpusOptions {
  std::vector<ParallelFiles> corpora = {};
  /// TSV lines without exactly one tab are left out and counted instead of an Error.
  bool skip_bad_lines = false;
  /// Pairs with a side of more tokens are left out. EOS is not counted. 0: no limit.
  int64_t max_length = 256;
  /// Pairs whose longer side has more than this many times the tokens of the shorter one are left
  /// out. 0: no limit.
  double max_length_ratio = 9.0;
  /// Threads that tokenize while the files are read; 0: one a core. The result does not depend on
  /// it.
  int64_t threads = 0;
};

/// What became of the pairs that were read (contract 9).
struct CorpusReport {
  int64_t pairs_read = 0;  ///< bad lines not counted
  int64_t pairs_kept = 0;
  int64_t empty = 0;         ///< a side is empty or blank
  int64_t too_long = 0;      ///< a side is beyond max_length
  int64_t length_ratio = 0;  ///< beyond max_length_ratio
  int64_t bad_utf8 = 0;      ///< a side is not UTF-8
  int64_t bad_lines = 0;     ///< TSV lines without exactly one tab

  int64_t left_out() const;
  CorpusReport& operator+=(const CorpusReport& other);
  bool operator==(const CorpusReport&) const = default;
  /// "29000 pairs" or "28990 pairs; left out 10: 7 empty, 3 too long".
  std::string to_string() const;
  nlohmann::json to_json() const;
};

/// Pairs of token ids in memory, from all corpora end to end: tokenized once, when they are loaded,
/// by background threads. Memory: 2 bytes a token (4 with a vocabulary above 65 536) and 16 bytes a
/// pair, which is about half the size of the text; loading adds some thousand lines a thread.
///
/// Weights: a corpus of n pairs and weight w gives, in epochs 0 to e, floor((e + 1) · w · n) pairs.
/// They are drawn as an endless row of passes over the corpus, each pass every pair once in an
/// order of its own. So w = 1 is every pair exactly once an epoch, w = 2 exactly twice, and with w
/// = 0.5 two epochs together hold every pair once; after any epoch no pair of a corpus has been
/// seen more than once more often than another.
class ParallelCorpus {
 public:
  /// Reads, tokenizes and filters. Throws Error: see ParallelReader and LineReader (files for
  /// training must be text), and where no pair is left or a tokenizer lacks BOS or EOS. Throws
  /// UsageError for options that cannot be meant.
  static ParallelCorpus load(const CorpusOptions& options, const Tokenizer& source_tokenizer,
                             const Tokenizer& target_tokenizer);

  /// Pairs of all corpora.
  int64_t pairs() const { return static_cast<int64_t>(store_.size()); }
  /// Tokens of a pair's sides, EOS not counted.
  int64_t source_length(int64_t pair) const { return store_.source_length(pair); }
  int64_t target_length(int64_t pair) const { return store_.target_length(pair); }
  void append_source(int64_t pair, std::vector<int32_t>& tokens) const;
  void append_target(int64_t pair, std::vector<int32_t>& tokens) const;
  /// Of all pairs, EOS not counted.
  int64_t source_tokens() const { return source_tokens_; }
  int64_t target_tokens() const { return target_tokens_; }

  /// A corpus among them: pairs [begin, end).
  struct Part {
    std::string name;
    double weight = 1.0;
    int64_t begin = 0;
    int64_t end = 0;
    CorpusReport report;
  };
  const std::vector<Part>& parts() const { return parts_; }
  /// Of all corpora together.
  CorpusReport report() const;

  int32_t source_eos() const { return source_eos_; }
  int32_t target_bos() const { return target_bos_; }
  int32_t target_eos() const { return target_eos_; }
  /// 16 hexadecimal digits of all token ids, in order: whether two runs see the same data.
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  ParallelCorpus() = default;
  void load_part(const ParallelFiles& files, const CorpusOptions& options,
                 const Tokenizer& source_tokenizer, const Tokenizer& target_tokenizer);
  void add_pair(std::span<const int32_t> source, std::span<const int32_t> target);
  void finish();

  TokenStore store_;
  std::vector<Part> parts_;
  int64_t source_tokens_ = 0;
  int64_t target_tokens_ = 0;
  int32_t source_eos_ = 0;
  int32_t target_bos_ = 0;
  int32_t target_eos_ = 0;
  std::string fingerprint_;
};

}  // namespace attend
