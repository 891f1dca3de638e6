#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "attend/data/fingerprint.h"

namespace attend {

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
  static CorpusReport from_json(const nlohmann::json& json);
};

/// A corpus among others: pairs [begin, end) of all.
struct CorpusPart {
  std::string name;
  double weight = 1.0;
  int64_t begin = 0;
  int64_t end = 0;
  CorpusReport report;
  bool finished = false;    ///< its text was read to the end, or to the end of a sample
  double share_read = 1.0;  ///< of its text: below 1 for a sample
};

/// All that is known of corpora save their tokens.
struct CorpusSummary {
  std::vector<CorpusPart> parts;
  int64_t pairs = 0;
  int64_t source_tokens = 0;  ///< of all pairs, EOS not counted
  int64_t target_tokens = 0;
  SequenceFingerprint fingerprint;

  int64_t tokens() const { return source_tokens + target_tokens; }
  /// Of all corpora together.
  CorpusReport report() const;
  /// What the whole text holds, where a sample was read: each corpus in proportion.
  CorpusSummary extrapolated() const;

  /// Of the parts, without names and weights, which belong to the options.
  nlohmann::json to_json() const;
  /// Throws Error for what no corpus can have, and nlohmann's exceptions for what is no such JSON.
  static CorpusSummary from_json(const nlohmann::json& json);
};

}  // namespace attend
