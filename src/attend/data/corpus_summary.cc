#include "attend/data/corpus_summary.h"

#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "attend/base/error.h"

namespace attend {
namespace {

using nlohmann::json;

/// The counts and what they are called in JSON.
constexpr std::pair<const char*, int64_t CorpusReport::*> kCounts[] = {
    {"pairs_read", &CorpusReport::pairs_read},
    {"pairs_kept", &CorpusReport::pairs_kept},
    {"empty", &CorpusReport::empty},
    {"too_long", &CorpusReport::too_long},
    {"length_ratio", &CorpusReport::length_ratio},
    {"bad_utf8", &CorpusReport::bad_utf8},
    {"bad_lines", &CorpusReport::bad_lines}};

/// Far beyond any corpus, and far from where sums overflow.
constexpr int64_t kMost = int64_t{1} << 56;

int64_t count_from(const json& from, const char* name) {
  const int64_t count = from.at(name).get<int64_t>();
  if (count < 0 || count > kMost) fail("{} is {}", name, count);
  return count;
}

int64_t scaled(int64_t count, double share) {
  return static_cast<int64_t>(std::llround(static_cast<double>(count) / share));
}

}  // namespace

// ------------------------------------------------------------------------------ CorpusReport

int64_t CorpusReport::left_out() const {
  return empty + too_long + length_ratio + bad_utf8 + bad_lines;
}

CorpusReport& CorpusReport::operator+=(const CorpusReport& other) {
  for (const auto& [name, count] : kCounts) this->*count += other.*count;
  return *this;
}

std::string CorpusReport::to_string() const {
  std::string text = fmt::format("{} pairs", pairs_kept);
  if (left_out() == 0) return text;
  text += fmt::format("; left out {}", left_out());
  std::string_view separator = ": ";
  const auto add = [&](int64_t count, std::string_view reason) {
    if (count == 0) return;
    text += fmt::format("{}{} {}", separator, count, reason);
    separator = ", ";
  };
  add(empty, "empty");
  add(too_long, "too long");
  add(length_ratio, "with a bad length ratio");
  add(bad_utf8, "not UTF-8");
  add(bad_lines, "without exactly one tab");
  return text;
}

json CorpusReport::to_json() const {
  json made;
  for (const auto& [name, count] : kCounts) made[name] = this->*count;
  return made;
}

CorpusReport CorpusReport::from_json(const json& from) {
  CorpusReport report;
  for (const auto& [name, count] : kCounts) report.*count = count_from(from, name);
  if (report.pairs_read != report.pairs_kept + report.left_out() - report.bad_lines) {
    fail("its counts of pairs do not add up");
  }
  return report;
}

// ------------------------------------------------------------------------------ CorpusSummary

CorpusReport CorpusSummary::report() const {
  CorpusReport total;
  for (const CorpusPart& part : parts) total += part.report;
  return total;
}

CorpusSummary CorpusSummary::extrapolated() const {
  CorpusSummary whole;
  double weighted = 0;  // pairs of the sample, each as often as it stands for others
  for (CorpusPart part : parts) {
    const int64_t sampled = part.end - part.begin;
    const double share = part.share_read > 0 ? part.share_read : 1;
    for (const auto& [name, count] : kCounts) {
      part.report.*count = scaled(part.report.*count, share);
    }
    weighted += static_cast<double>(sampled) / share;
    part.begin = whole.pairs;
    whole.pairs += scaled(sampled, share);
    part.end = whole.pairs;
    whole.parts.push_back(std::move(part));
  }
  const double share = weighted > 0 ? static_cast<double>(pairs) / weighted : 1;
  whole.source_tokens = scaled(source_tokens, share);
  whole.target_tokens = scaled(target_tokens, share);
  return whole;
}

json CorpusSummary::to_json() const {
  json made = {{"pairs", pairs},
               {"source_tokens", source_tokens},
               {"target_tokens", target_tokens},
               {"fingerprint", {fingerprint.value(), fingerprint.factor()}},
               {"parts", json::array()}};
  for (const CorpusPart& part : parts) {
    made["parts"].push_back({{"finished", part.finished}, {"report", part.report.to_json()}});
  }
  return made;
}

CorpusSummary CorpusSummary::from_json(const json& from) {
  CorpusSummary summary;
  for (const json& each : from.at("parts")) {
    CorpusPart part;
    part.finished = each.at("finished").get<bool>();
    part.report = CorpusReport::from_json(each.at("report"));
    part.begin = summary.pairs;
    summary.pairs += part.report.pairs_kept;
    if (summary.pairs > kMost) fail("it has too many pairs");
    part.end = summary.pairs;
    if (!summary.parts.empty() && !summary.parts.back().finished)
      fail("its parts are out of order");
    summary.parts.push_back(std::move(part));
  }
  if (summary.pairs != count_from(from, "pairs")) fail("its counts of pairs do not add up");
  summary.source_tokens = count_from(from, "source_tokens");
  summary.target_tokens = count_from(from, "target_tokens");
  summary.fingerprint = {from.at("fingerprint").at(0).get<uint64_t>(),
                         from.at("fingerprint").at(1).get<uint64_t>()};
  return summary;
}

}  // namespace attend
