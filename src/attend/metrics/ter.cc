#include "attend/metrics/ter.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "attend/metrics/edit_distance.h"
#include "attend/metrics/ngrams.h"
#include "attend/metrics/tokenizers.h"
#include "attend/metrics/unicode.h"

namespace attend {

namespace {

// Tercom's limits, and sacreBLEU's on the shifts that it tries for a segment.
constexpr size_t kMaxShiftSize = 10;
constexpr size_t kMaxShiftDistance = 50;
constexpr int64_t kMaxShiftCandidates = 1000;

using Words = std::vector<uint32_t>;

/// How a hypothesis and its reference lie beside each other before the next shift.
struct Alignment {
  /// For each word of the reference, the last word of the hypothesis at or before it; -1 for none.
  std::vector<int64_t> position;
  std::vector<bool> wrong_in_reference;
  std::vector<bool> wrong_in_hypothesis;
};

Alignment align(const std::vector<Edit>& edits) {
  Alignment alignment;
  int64_t hypothesis_position = -1;
  for (const Edit edit : edits) {
    const bool wrong = edit != Edit::kMatch;
    if (edit != Edit::kInsert) {
      ++hypothesis_position;
      alignment.wrong_in_hypothesis.push_back(wrong);
    }
    if (edit != Edit::kDelete) {
      alignment.position.push_back(hypothesis_position);
      alignment.wrong_in_reference.push_back(wrong);
    }
  }
  return alignment;
}

/// Words `start` to `start + length` of the hypothesis, moved before word `target`.
struct Shift {
  size_t start = 0;
  size_t length = 0;
  size_t target = 0;
};

Words apply(const Shift& shift, const Words& words) {
  Words shifted = words;
  const auto begin = shifted.begin();
  const auto first = begin + static_cast<int64_t>(shift.start);
  const auto last = first + static_cast<int64_t>(shift.length);
  if (shift.target < shift.start) {
    std::rotate(begin + static_cast<int64_t>(shift.target), first, last);
    return shifted;
  }
  // A target within the moved words themselves counts from where they end.
  const size_t end =
      shift.target > shift.start + shift.length ? shift.target : shift.target + shift.length;
  std::rotate(first, last, begin + static_cast<int64_t>(std::min(end, words.size())));
  return shifted;
}

/// Looks for the shift that saves most edits, as Tercom does.
class ShiftSearch {
 public:
  explicit ShiftSearch(const Words& reference) : reference_(reference), distance_(reference) {}

  /// The edits of a segment: shifts as long as they save something, and what remains.
  int64_t count_edits(const Words& hypothesis) {
    int64_t shifts = 0;
    int64_t remaining = distance_.set_hypothesis(hypothesis);
    for (;;) {
      const std::optional<Shift> best = best_shift(remaining);
      if (!best || candidates_ >= kMaxShiftCandidates) return shifts + remaining;
      remaining = distance_.set_hypothesis(apply(*best, distance_.hypothesis()));
      ++shifts;
    }
  }

 private:
  std::optional<Shift> best_shift(int64_t edits_before) {
    alignment_ = align(distance_.edits());
    edits_before_ = edits_before;
    best_saving_ = 0;
    best_ = Shift{};
    const size_t words = distance_.hypothesis().size();
    for (size_t start = 0; start < words; ++start) {
      const size_t end = std::min(reference_.size(), start + kMaxShiftDistance + 1);
      for (size_t at = start - std::min(start, kMaxShiftDistance); at < end; ++at) {
        if (!try_matches(start, at)) return found();
      }
    }
    return found();
  }

  std::optional<Shift> found() const {
    return best_saving_ > 0 ? std::optional(best_) : std::nullopt;
  }

  /// Tries every run of words that is the same in the hypothesis from `start` on and in the
  /// reference from `at` on. False where the candidates are used up.
  bool try_matches(size_t start, size_t at) {
    const Words& hypothesis = distance_.hypothesis();
    const size_t longest =
        std::min({kMaxShiftSize, hypothesis.size() - start, reference_.size() - at});
    for (size_t length = 1; length <= longest; ++length) {
      if (hypothesis[start + length - 1] != reference_[at + length - 1]) break;
      if (is_worth_trying(start, at, length)) try_targets(start, at, length);
      if (candidates_ >= kMaxShiftCandidates) return false;
    }
    return true;
  }

  /// Both sides must have an error within the run, and the run must not lie at its place already.
  bool is_worth_trying(size_t start, size_t at, size_t length) const {
    const auto has_error = [length](const std::vector<bool>& wrong, size_t from) {
      const auto first = wrong.begin() + static_cast<int64_t>(from);
      return std::find(first, first + static_cast<int64_t>(length), true) !=
             first + static_cast<int64_t>(length);
    };
    if (!has_error(alignment_.wrong_in_hypothesis, start)) return false;
    if (!has_error(alignment_.wrong_in_reference, at)) return false;
    const int64_t place = alignment_.position[at];
    return place < static_cast<int64_t>(start) || place >= static_cast<int64_t>(start + length);
  }

  /// Targets are behind the word that is aligned with the one before the run, and behind those
  /// aligned with the run's own words.
  void try_targets(size_t start, size_t at, size_t length) {
    std::optional<size_t> previous;
    for (size_t offset = 0; offset <= length; ++offset) {
      const size_t behind = at + offset;  // one more than the word's position in the reference
      const size_t target =
          behind == 0 ? 0 : static_cast<size_t>(alignment_.position[behind - 1] + 1);
      if (target == previous) continue;
      previous = target;
      consider({start, length, target});
    }
  }

  /// Of shifts that save as much, the longest, then the first, then the one to the first target.
  void consider(const Shift& shift) {
    ++candidates_;
    const int64_t saving =
        edits_before_ - distance_.distance_of(apply(shift, distance_.hypothesis()));
    if (saving < best_saving_ || saving <= 0) return;
    const auto rank = [](int64_t saved, const Shift& of) {
      return std::tuple(saved, of.length, -static_cast<int64_t>(of.start),
                        -static_cast<int64_t>(of.target));
    };
    if (best_saving_ > 0 && rank(saving, shift) <= rank(best_saving_, best_)) return;
    best_saving_ = saving;
    best_ = shift;
  }

  const Words& reference_;
  BeamEditDistance distance_;
  Alignment alignment_;
  int64_t edits_before_ = 0;
  int64_t candidates_ = 0;  ///< tried so far, over all shifts of the segment
  int64_t best_saving_ = 0;
  Shift best_;
};

int64_t edits_of(const Words& hypothesis, const Words& reference) {
  if (reference.empty()) return static_cast<int64_t>(hypothesis.size());
  return ShiftSearch(reference).count_edits(hypothesis);
}

std::string tokenize_hypothesis(const TerOptions& options, std::string_view line) {
  return tokenize_tercom(options, strip_right(line));
}

/// sacreBLEU tokenizes references twice. This makes a difference to normalisation only: "Anna's,"
/// is two words after the first time, "Anna's" and ",", and three after the second.
std::string tokenize_reference(const TerOptions& options, std::string_view line) {
  const std::string once = tokenize_hypothesis(options, line);
  return options.normalized ? tokenize_tercom(options, once) : once;
}

std::string yes_or_no(bool value) { return value ? "yes" : "no"; }

std::string signature(const TerOptions& options, size_t references) {
  return make_signature(
      references,
      fmt::format("case:{}|tok:tercom|norm:{}|punct:{}|asian:{}",
                  options.case_sensitive ? "mixed" : "lc", yes_or_no(options.normalized),
                  yes_or_no(!options.no_punct), yes_or_no(options.asian_support)));
}

/// The quotient in percent; 100 for words where the reference has none, 0 where neither has any.
double value_of(std::span<const double> sums) {
  if (sums[1] > 0) return 100 * (sums[0] / sums[1]);
  return sums[0] > 0 ? 100 : 0;
}

}  // namespace

TerScore corpus_ter(const Lines& hypotheses, const References& references,
                    const TerOptions& options) {
  return ter_from_statistics(ter_statistics(hypotheses, references, options), options);
}

TerScore sentence_ter(const std::string& hypothesis, const Lines& references,
                      const TerOptions& options) {
  return corpus_ter({hypothesis}, as_references(references), options);
}

SegmentStatistics ter_statistics(const Lines& hypotheses, const References& references,
                                 const TerOptions& options) {
  check_lines(hypotheses, references);
  SegmentStatistics statistics(2, reference_count(references));
  WordIds ids;
  for (size_t line = 0; line < hypotheses.size(); ++line) {
    const Words hypothesis = ids.of_line(tokenize_hypothesis(options, hypotheses[line]));
    int64_t fewest = std::numeric_limits<int64_t>::max();
    double length = 0;
    const std::vector<std::string_view> translations = references_of(references, line);
    for (const std::string_view translation : translations) {
      const Words reference = ids.of_line(tokenize_reference(options, translation));
      fewest = std::min(fewest, edits_of(hypothesis, reference));
      length += static_cast<double>(reference.size());
    }
    const double row[] = {static_cast<double>(fewest),
                          length / static_cast<double>(translations.size())};
    statistics.add(row);
  }
  return statistics;
}

TerScore ter_from_statistics(const SegmentStatistics& statistics, const TerOptions& options) {
  const std::vector<double> sums = statistics.sum();
  TerScore score;
  score.name = "TER";
  score.value = value_of(sums);
  score.signature = signature(options, statistics.references());
  score.edits = static_cast<int64_t>(sums[0]);
  score.reference_length = sums[1];
  return score;
}

Scorer ter_scorer() { return value_of; }

}  // namespace attend
