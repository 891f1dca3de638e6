#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attend {

/// Lines of text, one segment each, without their newline. Text is UTF-8, but malformed UTF-8 is
/// not an error: where characters count, each malformed sequence is one U+FFFD.
using Lines = std::vector<std::string>;

/// One or several reference translations of the same lines: `references[set][line]`. An empty one
/// is a reference without words; one that is missing is kNoReference.
using References = std::vector<Lines>;
/// No line of a text, since lines have no newline.
inline constexpr std::string_view kNoReference = "\n";

/// A 95% confidence interval from bootstrap resampling (Koehn 2004, §3.2).
struct Confidence {
  double mean = 0;        ///< mean score of the resamples
  double half_width = 0;  ///< half the distance between the 2.5% and the 97.5% quantile
  int64_t resamples = 0;
  uint64_t seed = 0;
};

/// What every metric's score has. The formats are sacreBLEU 2's.
struct Score {
  std::string name;       ///< "BLEU", "chrF2", "chrF2++", "TER"
  double value = 0;       ///< from 0 to 100 (TER can exceed 100, and lower is better)
  std::string signature;  ///< "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:attend-0.1.0"
  std::string verbose;    ///< BLEU's parts; empty for the others
  std::optional<Confidence> confidence;

  /// The number alone with `width` digits after the point, e.g. "27.3" or
  /// "27.3 (μ = 27.2 ± 0.6)" where there is a confidence interval.
  std::string format_value(int width = 1) const;
  /// The whole line: "NAME|SIGNATURE = VALUE VERBOSE".
  std::string format(int width = 1) const;
};

/// The parts of a signature in their order, e.g. {"nrefs", "1"}.
std::vector<std::pair<std::string, std::string>> signature_fields(std::string_view signature);

/// What a metric counts, a row a segment. All rows are added up before a score is computed from
/// the sum, so that a corpus can be resampled without reading the text again.
class SegmentStatistics {
 public:
  /// `references` as reference_count() gives it.
  explicit SegmentStatistics(size_t columns, size_t references = 1)
      : columns_(columns), references_(references) {}

  size_t columns() const { return columns_; }
  size_t size() const { return values_.size() / columns_; }
  size_t references() const { return references_; }
  std::span<const double> row(size_t segment) const {
    return {values_.data() + segment * columns_, columns_};
  }
  /// Appends a row of `columns()` numbers.
  void add(std::span<const double> row);
  std::vector<double> sum() const;

 private:
  size_t columns_;
  size_t references_;
  std::vector<double> values_;
};

/// Computes a score from a sum of rows of SegmentStatistics.
using Scorer = std::function<double(std::span<const double>)>;

/// Throws UsageError where there is no reference set, a set has another number of lines than the
/// hypotheses (the message has both numbers), or all references of a line are missing, and Error
/// where there are no lines at all.
void check_lines(const Lines& hypotheses, const References& references);

/// The references of a text of one line, from all translations of that line.
References as_references(const Lines& translations);

/// The references of a line that are not missing.
std::vector<std::string_view> references_of(const References& references, size_t line);
/// How many references a line has; 0 where that differs from line to line.
size_t reference_count(const References& references);

/// Builds a signature: "nrefs:N|" ("nrefs:var|" for 0), then the metric's own fields, then attend's
/// version.
std::string make_signature(size_t references, std::string_view fields);

}  // namespace attend
