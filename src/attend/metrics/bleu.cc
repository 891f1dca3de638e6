#include "attend/metrics/bleu.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "attend/base/error.h"
#include "attend/metrics/ngrams.h"
#include "attend/metrics/unicode.h"

namespace attend {

namespace {

constexpr std::array<std::pair<BleuSmoothing, std::string_view>, 4> kSmoothingNames = {{
    {BleuSmoothing::kNone, "none"},
    {BleuSmoothing::kFloor, "floor"},
    {BleuSmoothing::kAddK, "add-k"},
    {BleuSmoothing::kExp, "exp"},
}};

bool takes_value(BleuSmoothing smoothing) {
  return smoothing == BleuSmoothing::kFloor || smoothing == BleuSmoothing::kAddK;
}

double smooth_value(const BleuOptions& options) {
  return options.smooth_value.value_or(options.smoothing == BleuSmoothing::kFloor ? 0.1 : 1.0);
}

void check(const BleuOptions& options) {
  if (!options.smooth_value) return;
  if (!takes_value(options.smoothing)) {
    fail_usage("BLEU's smoothing '{}' takes no value (found {}): only floor and add-k do",
               name_of(options.smoothing), *options.smooth_value);
  }
  if (!std::isfinite(*options.smooth_value) || *options.smooth_value < 0) {
    fail_usage("BLEU's smoothing value is {}: expected 0 or more", *options.smooth_value);
  }
}

std::string signature(const BleuOptions& options, size_t references) {
  std::string smoothing(name_of(options.smoothing));
  if (takes_value(options.smoothing)) smoothing += fmt::format("[{:.2f}]", smooth_value(options));
  return make_signature(
      references, fmt::format("case:{}|eff:{}|tok:{}|smooth:{}", options.lowercase ? "lc" : "mixed",
                              options.effective_order.value_or(false) ? "yes" : "no",
                              name_of(options.tokenizer), smoothing));
}

std::vector<uint32_t> words_of(const std::string& line, const BleuOptions& options, WordIds& ids) {
  const std::string text = options.lowercase ? lowercase(line) : line;
  return ids.of_line(tokenize(options.tokenizer, strip_right(text)));
}

/// The reference length closest to the hypothesis's; of two as close, the shorter.
size_t closest_length(size_t length, std::span<const Symbols> references) {
  const auto distance = [&](size_t other) {
    return std::max(length, other) - std::min(length, other);
  };
  size_t closest = references[0].size();
  for (const Symbols reference : references) {
    closest = std::min(closest, reference.size(), [&](size_t a, size_t b) {
      return std::pair(distance(a), a) < std::pair(distance(b), b);
    });
  }
  return closest;
}

std::array<double, 2 + 2 * kBleuOrder> segment_row(Symbols hypothesis,
                                                   std::span<const Symbols> references) {
  std::array<double, 2 + 2 * kBleuOrder> row{};
  row[0] = static_cast<double>(hypothesis.size());
  row[1] = static_cast<double>(closest_length(hypothesis.size(), references));
  const std::vector<int64_t> matches = matching_ngrams(hypothesis, references, kBleuOrder);
  for (size_t n = 0; n < kBleuOrder; ++n) {
    row[2 + n] = static_cast<double>(matches[n]);
    row[2 + kBleuOrder + n] = static_cast<double>(ngram_count(hypothesis.size(), n + 1));
  }
  return row;
}

struct Precisions {
  std::array<double, kBleuOrder> percent{};
  size_t order = kBleuOrder;  ///< how many of them the mean is taken of
};

/// The n-gram precisions after smoothing.
Precisions precisions_of(std::span<const double> counts, std::span<const double> totals,
                         const BleuOptions& options) {
  Precisions precisions;
  double exp_divisor = 1;
  for (size_t n = 0; n < kBleuOrder; ++n) {
    const double added =
        options.smoothing == BleuSmoothing::kAddK && n > 0 ? smooth_value(options) : 0;
    const double count = counts[n] + added, total = totals[n] + added;
    if (total == 0) break;
    if (options.effective_order.value_or(false)) precisions.order = n + 1;
    if (count > 0) {
      precisions.percent[n] = 100.0 * count / total;
    } else if (options.smoothing == BleuSmoothing::kExp) {
      exp_divisor *= 2;
      precisions.percent[n] = 100.0 / (exp_divisor * total);
    } else if (options.smoothing == BleuSmoothing::kFloor) {
      precisions.percent[n] = 100.0 * smooth_value(options) / total;
    }
  }
  return precisions;
}

double geometric_mean(const Precisions& precisions) {
  double sum = 0;
  for (size_t n = 0; n < precisions.order; ++n) {
    if (precisions.percent[n] == 0) return 0;
    sum += std::log(precisions.percent[n]);
  }
  return std::exp(sum / static_cast<double>(precisions.order));
}

double brevity_penalty(double hypothesis_length, double reference_length) {
  if (hypothesis_length >= reference_length) return 1;
  return hypothesis_length > 0 ? std::exp(1 - reference_length / hypothesis_length) : 0;
}

/// Everything but name, signature and verbose, which resampling has no use for.
BleuScore score_of(std::span<const double> sums, const BleuOptions& options) {
  BleuScore score;
  score.hypothesis_length = static_cast<int64_t>(sums[0]);
  score.reference_length = static_cast<int64_t>(sums[1]);
  score.brevity_penalty = brevity_penalty(sums[0], sums[1]);
  score.ratio = sums[1] > 0 ? sums[0] / sums[1] : 0;
  const std::span<const double> counts = sums.subspan(2, kBleuOrder);
  const std::span<const double> totals = sums.subspan(2 + kBleuOrder, kBleuOrder);
  for (size_t n = 0; n < kBleuOrder; ++n) {
    score.counts[n] = static_cast<int64_t>(counts[n]);
    score.totals[n] = static_cast<int64_t>(totals[n]);
  }
  // Smoothing is for texts with some match.
  if (std::all_of(counts.begin(), counts.end(), [](double count) { return count == 0; })) {
    return score;
  }
  const Precisions precisions = precisions_of(counts, totals, options);
  score.precisions = precisions.percent;
  score.value = score.brevity_penalty * geometric_mean(precisions);
  return score;
}

std::string verbose(const BleuScore& score) {
  return fmt::format(
      "{:.1f}/{:.1f}/{:.1f}/{:.1f} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})",
      score.precisions[0], score.precisions[1], score.precisions[2], score.precisions[3],
      score.brevity_penalty, score.ratio, score.hypothesis_length, score.reference_length);
}

}  // namespace

std::string_view name_of(BleuSmoothing smoothing) {
  for (const auto& [value, name] : kSmoothingNames) {
    if (value == smoothing) return name;
  }
  fail("unknown BLEU smoothing {}", static_cast<int>(smoothing));
}

BleuSmoothing parse_bleu_smoothing(std::string_view name) {
  for (const auto& [value, known] : kSmoothingNames) {
    if (known == name) return value;
  }
  fail_usage("unknown BLEU smoothing '{}': expected none, floor, add-k or exp", name);
}

BleuScore corpus_bleu(const Lines& hypotheses, const References& references,
                      const BleuOptions& options) {
  return bleu_from_statistics(bleu_statistics(hypotheses, references, options), options);
}

BleuScore sentence_bleu(const std::string& hypothesis, const Lines& references,
                        const BleuOptions& options) {
  BleuOptions of_sentence = options;
  of_sentence.effective_order = options.effective_order.value_or(true);
  return corpus_bleu({hypothesis}, as_references(references), of_sentence);
}

SegmentStatistics bleu_statistics(const Lines& hypotheses, const References& references,
                                  const BleuOptions& options) {
  check(options);
  check_lines(hypotheses, references);
  SegmentStatistics statistics(2 + 2 * kBleuOrder, references.size());
  WordIds ids;
  std::vector<std::vector<uint32_t>> words(references.size());
  for (size_t line = 0; line < hypotheses.size(); ++line) {
    for (size_t r = 0; r < references.size(); ++r) {
      words[r] = words_of(references[r][line], options, ids);
    }
    const std::vector<Symbols> spans(words.begin(), words.end());
    statistics.add(segment_row(words_of(hypotheses[line], options, ids), spans));
  }
  return statistics;
}

BleuScore bleu_from_statistics(const SegmentStatistics& statistics, const BleuOptions& options) {
  check(options);
  BleuScore score = score_of(statistics.sum(), options);
  score.name = "BLEU";
  score.signature = signature(options, statistics.references());
  score.verbose = verbose(score);
  return score;
}

Scorer bleu_scorer(const BleuOptions& options) {
  check(options);
  return [options](std::span<const double> sums) { return score_of(sums, options).value; };
}

}  // namespace attend
