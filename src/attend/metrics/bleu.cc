#include "attend/metrics/bleu.h"

#include <algorithm>
#include <array>
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
  if (options.max_ngram_order < 1 || options.max_ngram_order > 100) {
    fail_usage("BLEU's max_ngram_order is {}: expected from 1 to 100", options.max_ngram_order);
  }
  if (!options.smooth_value) return;
  if (!takes_value(options.smoothing)) {
    fail_usage(
        "smooth_value: found {1}, but BLEU's smoothing {0} takes no value; floor and add-k do",
        name_of(options.smoothing), *options.smooth_value);
  }
  if (!std::isfinite(*options.smooth_value) || *options.smooth_value < 0) {
    fail_usage("BLEU's smoothing value is {}: expected 0 or more", *options.smooth_value);
  }
}

size_t order_of(const BleuOptions& options) { return static_cast<size_t>(options.max_ngram_order); }

std::string signature(const BleuOptions& options, size_t references) {
  std::string smoothing(name_of(options.smoothing));
  if (takes_value(options.smoothing)) smoothing += fmt::format("[{:.2f}]", smooth_value(options));
  // sacreBLEU does not say the order, which takes a program to change there.
  const std::string order =
      options.max_ngram_order == 4 ? "" : fmt::format("|order:{}", options.max_ngram_order);
  return make_signature(
      references,
      fmt::format("case:{}|eff:{}|tok:{}|smooth:{}{}", options.lowercase ? "lc" : "mixed",
                  options.effective_order.value_or(false) ? "yes" : "no",
                  signature_of(options.tokenizer), smoothing, order));
}

/// Cuts lines into the numbers of their words.
class WordReader {
 public:
  explicit WordReader(const BleuOptions& options)
      : lowercase_(options.lowercase),
        tokenize_(load_bleu_tokenizer(options.tokenizer, options.tokenizer_model)) {}

  std::vector<uint32_t> words_of(std::string_view line) {
    const std::string text = lowercase_ ? lowercase(line) : std::string(line);
    return ids_.of_line(tokenize_(strip_right(text)));
  }

 private:
  bool lowercase_;
  LineTokenizer tokenize_;
  WordIds ids_;
};

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

std::vector<double> segment_row(Symbols hypothesis, std::span<const Symbols> references,
                                size_t max_order) {
  std::vector<double> row = {static_cast<double>(hypothesis.size()),
                             static_cast<double>(closest_length(hypothesis.size(), references))};
  for (const int64_t count : matching_ngrams(hypothesis, references, max_order)) {
    row.push_back(static_cast<double>(count));
  }
  for (size_t n = 1; n <= max_order; ++n) {
    row.push_back(static_cast<double>(ngram_count(hypothesis.size(), n)));
  }
  return row;
}

struct Precisions {
  std::vector<double> percent;
  size_t order;  ///< how many of them the mean is taken of
};

/// The n-gram precisions after smoothing.
Precisions precisions_of(std::span<const double> counts, std::span<const double> totals,
                         const BleuOptions& options) {
  Precisions precisions{std::vector<double>(counts.size(), 0.0), counts.size()};
  double exp_divisor = 1;
  for (size_t n = 0; n < counts.size(); ++n) {
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
  const std::span<const double> counts = sums.subspan(2, order_of(options));
  const std::span<const double> totals = sums.subspan(2 + order_of(options));
  score.counts.assign(counts.begin(), counts.end());
  score.totals.assign(totals.begin(), totals.end());
  score.precisions.assign(counts.size(), 0.0);
  // Smoothing is for texts with some match.
  if (std::all_of(counts.begin(), counts.end(), [](double count) { return count == 0; })) {
    return score;
  }
  Precisions precisions = precisions_of(counts, totals, options);
  score.value = score.brevity_penalty * geometric_mean(precisions);
  score.precisions = std::move(precisions.percent);
  return score;
}

std::string verbose(const BleuScore& score) {
  std::string precisions;
  for (const double precision : score.precisions) {
    precisions += fmt::format("{}{:.1f}", precisions.empty() ? "" : "/", precision);
  }
  return fmt::format("{} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})", precisions,
                     score.brevity_penalty, score.ratio, score.hypothesis_length,
                     score.reference_length);
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
  const size_t order = order_of(options);
  SegmentStatistics statistics(2 + 2 * order, reference_count(references));
  WordReader reader(options);
  for (size_t line = 0; line < hypotheses.size(); ++line) {
    std::vector<std::vector<uint32_t>> words;
    for (const std::string_view reference : references_of(references, line)) {
      words.push_back(reader.words_of(reference));
    }
    const std::vector<Symbols> spans(words.begin(), words.end());
    statistics.add(segment_row(reader.words_of(hypotheses[line]), spans, order));
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
