#include "attend/metrics/score.h"

#include <algorithm>

#include <fmt/format.h>

#include "attend/base/error.h"
#include "attend/base/version.h"

namespace attend {

std::string Score::format_value(int width) const {
  std::string text = fmt::format("{:.{}f}", value, width);
  if (confidence && confidence->mean > 0) {
    text += fmt::format(" (μ = {:.{}f} ± {:.{}f})", confidence->mean, width, confidence->half_width,
                        width);
  }
  return text;
}

std::string Score::format(int width) const {
  std::string line = fmt::format("{}|{} = {}", name, signature, format_value(width));
  if (!verbose.empty()) line += " " + verbose;
  return line;
}

std::vector<std::pair<std::string, std::string>> signature_fields(std::string_view signature) {
  std::vector<std::pair<std::string, std::string>> fields;
  while (!signature.empty()) {
    const size_t end = std::min(signature.find('|'), signature.size());
    const std::string_view field = signature.substr(0, end);
    const size_t colon = std::min(field.find(':'), field.size());
    fields.emplace_back(field.substr(0, colon), field.substr(std::min(colon + 1, field.size())));
    signature.remove_prefix(std::min(end + 1, signature.size()));
  }
  return fields;
}

void SegmentStatistics::add(std::span<const double> row) {
  if (row.size() != columns_) fail("a row of {} numbers among rows of {}", row.size(), columns_);
  values_.insert(values_.end(), row.begin(), row.end());
}

std::vector<double> SegmentStatistics::sum() const {
  std::vector<double> total(columns_, 0.0);
  for (size_t i = 0; i < values_.size(); ++i) total[i % columns_] += values_[i];
  return total;
}

void check_lines(const Lines& hypotheses, const References& references) {
  if (references.empty()) fail_usage("there is no reference to score against");
  for (size_t set = 0; set < references.size(); ++set) {
    if (references[set].size() == hypotheses.size()) continue;
    const std::string which = references.size() == 1 ? "" : fmt::format(" {}", set + 1);
    fail_usage(
        "reference{} has {} lines and the hypotheses have {}: line N of one must translate "
        "line N of the other",
        which, references[set].size(), hypotheses.size());
  }
  if (hypotheses.empty()) fail("there are no lines to score: hypotheses and reference are empty");
  for (size_t line = 0; line < hypotheses.size(); ++line) {
    if (references_of(references, line).empty()) {
      fail_usage("line {} has no reference in any of the sets: expected one at least", line + 1);
    }
  }
}

std::vector<std::string_view> references_of(const References& references, size_t line) {
  std::vector<std::string_view> present;
  for (const Lines& set : references) {
    if (set[line] != kNoReference) present.push_back(set[line]);
  }
  return present;
}

size_t reference_count(const References& references) {
  size_t count = references_of(references, 0).size();
  for (size_t line = 1; line < references[0].size(); ++line) {
    if (references_of(references, line).size() != count) return 0;
  }
  return count;
}

References as_references(const Lines& translations) {
  References references;
  for (const std::string& translation : translations) references.push_back({translation});
  return references;
}

std::string make_signature(size_t references, std::string_view fields) {
  return fmt::format("nrefs:{}|{}|version:attend-{}",
                     references == 0 ? "var" : std::to_string(references), fields, kVersion);
}

}  // namespace attend
