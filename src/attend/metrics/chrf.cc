#include "attend/metrics/chrf.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "attend/base/error.h"
#include "attend/metrics/ngrams.h"
#include "attend/metrics/tokenizers.h"
#include "attend/metrics/unicode.h"

namespace attend {

namespace {

void check(const ChrfOptions& options) {
  constexpr int64_t kMostOrders = 100;
  for (const auto& [name, order] : {std::pair("chrf_char_order", options.char_order),
                                    {"chrf_word_order", options.word_order}}) {
    if (order >= 0 && order <= kMostOrders) continue;
    fail_usage("{}: found {}, expected from 0 to {}", name, order, kMostOrders);
  }
  if (options.char_order + options.word_order == 0) {
    fail_usage("chrf_char_order: found 0 and no word n-grams either; expected 1 or more of one");
  }
  if (options.beta < 1) fail_usage("chrF's beta is {}: expected 1 or more", options.beta);
}

std::string signature(const ChrfOptions& options, size_t references) {
  return make_signature(
      references,
      fmt::format("case:{}|eff:{}|nc:{}|nw:{}|space:{}", options.lowercase ? "lc" : "mixed",
                  options.eps_smoothing ? "no" : "yes", options.char_order, options.word_order,
                  options.whitespace ? "yes" : "no"));
}

/// A line as chrF sees it.
struct Segment {
  std::vector<uint32_t> characters;
  std::vector<uint32_t> words;
};

bool is_ascii_punctuation(char byte) {
  return (byte >= '!' && byte <= '/') || (byte >= ':' && byte <= '@') ||
         (byte >= '[' && byte <= '`') || (byte >= '{' && byte <= '~');
}

/// Words, and punctuation apart from them: one character, at the end or else at the start.
std::vector<uint32_t> words_of(std::string_view line, WordIds& ids) {
  std::vector<uint32_t> words;
  for (const std::string_view word : split_words(line)) {
    const size_t last = word.size() - 1;
    size_t cut = 0;  // where the word comes apart; 0 for nowhere
    if (last > 0 && is_ascii_punctuation(word[last])) {
      cut = last;
    } else if (last > 0 && is_ascii_punctuation(word[0])) {
      cut = 1;
    }
    if (cut > 0) words.push_back(ids[word.substr(0, cut)]);
    words.push_back(ids[word.substr(cut)]);
  }
  return words;
}

Segment segment_of(std::string_view line, const ChrfOptions& options, WordIds& ids) {
  const std::string text = options.lowercase ? lowercase(line) : std::string(line);
  Segment segment;
  for (const char32_t code_point : decode_utf8(text)) {
    if (options.whitespace || !is_space(code_point)) segment.characters.push_back(code_point);
  }
  if (options.word_order > 0) segment.words = words_of(text, ids);
  return segment;
}

void append_orders(std::vector<double>& row, Symbols hypothesis, Symbols reference,
                   int64_t max_order) {
  const auto orders = static_cast<size_t>(max_order);
  const std::vector<int64_t> matches = matching_ngrams(hypothesis, {&reference, 1}, orders);
  for (size_t n = 1; n <= orders; ++n) {
    const int64_t in_reference = ngram_count(reference.size(), n);
    // An order that the reference is too short for does not count against the hypothesis.
    const int64_t in_hypothesis = in_reference > 0 ? ngram_count(hypothesis.size(), n) : 0;
    row.push_back(static_cast<double>(in_hypothesis));
    row.push_back(static_cast<double>(in_reference));
    row.push_back(static_cast<double>(matches[n - 1]));
  }
}

/// The mean over orders of F-scores, each with a small number for what is undefined.
double mean_of_f_scores(std::span<const double> sums, double factor) {
  constexpr double kEpsilon = 1e-16;
  double total = 0, orders = 0;
  for (size_t i = 0; i < sums.size(); i += 3) {
    const double precision = sums[i] > 0 ? sums[i + 2] / sums[i] : kEpsilon;
    const double recall = sums[i + 1] > 0 ? sums[i + 2] / sums[i + 1] : kEpsilon;
    const double denominator = factor * precision + recall;
    total += denominator > 0 ? (1 + factor) * precision * recall / denominator : kEpsilon;
    ++orders;
  }
  return 100 * total / orders;
}

/// The F-score of the means over those orders that both sides are long enough for.
double f_score_of_means(std::span<const double> sums, double factor) {
  double precision = 0, recall = 0, orders = 0;
  for (size_t i = 0; i < sums.size(); i += 3) {
    if (sums[i] == 0 || sums[i + 1] == 0) continue;
    precision += sums[i + 2] / sums[i];
    recall += sums[i + 2] / sums[i + 1];
    ++orders;
  }
  if (precision + recall == 0) return 0;
  precision /= orders;
  recall /= orders;
  return 100 * ((1 + factor) * precision * recall / (factor * precision + recall));
}

double value_of(std::span<const double> sums, const ChrfOptions& options) {
  const auto beta = static_cast<double>(options.beta);
  const double factor = beta * beta;
  return options.eps_smoothing ? mean_of_f_scores(sums, factor) : f_score_of_means(sums, factor);
}

std::vector<double> row_of(const Segment& hypothesis, const Segment& reference,
                           const ChrfOptions& options) {
  std::vector<double> row;
  append_orders(row, hypothesis.characters, reference.characters, options.char_order);
  append_orders(row, hypothesis.words, reference.words, options.word_order);
  return row;
}

}  // namespace

ChrfScore corpus_chrf(const Lines& hypotheses, const References& references,
                      const ChrfOptions& options) {
  return chrf_from_statistics(chrf_statistics(hypotheses, references, options), options);
}

ChrfScore sentence_chrf(const std::string& hypothesis, const Lines& references,
                        const ChrfOptions& options) {
  return corpus_chrf({hypothesis}, as_references(references), options);
}

SegmentStatistics chrf_statistics(const Lines& hypotheses, const References& references,
                                  const ChrfOptions& options) {
  check(options);
  check_lines(hypotheses, references);
  SegmentStatistics statistics(static_cast<size_t>(3 * (options.char_order + options.word_order)),
                               reference_count(references));
  WordIds ids;
  for (size_t line = 0; line < hypotheses.size(); ++line) {
    const Segment hypothesis = segment_of(hypotheses[line], options, ids);
    std::vector<double> best;
    for (const std::string_view reference : references_of(references, line)) {
      std::vector<double> row = row_of(hypothesis, segment_of(reference, options, ids), options);
      if (best.empty() || value_of(row, options) > value_of(best, options)) best = std::move(row);
    }
    statistics.add(best);
  }
  return statistics;
}

ChrfScore chrf_from_statistics(const SegmentStatistics& statistics, const ChrfOptions& options) {
  check(options);
  ChrfScore score;
  score.name = fmt::format("chrF{}{}", options.beta,
                           std::string(static_cast<size_t>(options.word_order), '+'));
  score.value = value_of(statistics.sum(), options);
  score.signature = signature(options, statistics.references());
  score.char_order = options.char_order;
  score.word_order = options.word_order;
  score.beta = options.beta;
  return score;
}

Scorer chrf_scorer(const ChrfOptions& options) {
  check(options);
  return [options](std::span<const double> sums) { return value_of(sums, options); };
}

}  // namespace attend
