#include <nlohmann/json.hpp>

#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/cli/command.h"
#include "attend/cli/output.h"
#include "attend/data/text.h"
#include "attend/metrics/bleu.h"
#include "attend/metrics/chrf.h"
#include "attend/metrics/significance.h"
#include "attend/metrics/ter.h"

namespace attend {

namespace {
enum class Metric { kBleu, kChrf, kChrfPlusPlus, kTer };
}  // namespace

template <>
struct Choices<Metric> {
  static constexpr Metric kAll[] = {Metric::kBleu, Metric::kChrf, Metric::kChrfPlusPlus,
                                    Metric::kTer};
};

namespace {

std::string_view name_of(Metric metric) {
  switch (metric) {
    case Metric::kBleu:
      return "bleu";
    case Metric::kChrf:
      return "chrf";
    case Metric::kChrfPlusPlus:
      return "chrf++";
    case Metric::kTer:
      return "ter";
  }
  return "?";
}

constexpr std::string_view kDetails =
    "The scores are sacreBLEU's to the last digit, and each line starts with the signature that "
    "says how\nthe score was made. With --sentence there is one line of output a line of input: "
    "its scores in the\norder of --metrics, with tabs between them. With --json the result is an "
    "array with an object a\nmetric, or, with --sentence, an object a line.";

class EvaluateCommand : public Command {
 public:
  std::string_view name() const override { return "evaluate"; }
  std::string_view summary() const override {
    return "Score translations against references with BLEU, chrF, chrF++ and TER";
  }
  std::string_view details() const override { return kDetails; }

  void define(OptionSet& options) override {
    options.group("Text");
    options.add("reference", references_, "Reference translations, one file a set; .gz or not")
        .metavar("FILE");
    options.add("hypothesis", hypothesis_, "The translations to score; - is standard input")
        .metavar("FILE");
    options.group("Scores");
    options.add("metrics", metrics_, "What to compute, with commas or spaces between them");
    options.add("tokenize", bleu_.tokenizer, "How BLEU cuts lines into words");
    options.add("lowercase", lowercase_, "Ignore case in BLEU and chrF (TER always does)");
    options.add("smooth", bleu_.smoothing, "What BLEU does about n-gram orders without a match");
    options.add("smooth_value", bleu_.smooth_value,
                "Of the smoothings floor (auto: 0.1) and add-k (auto: 1)");
    options.add("sentence", sentence_, "Score each line by itself");
    options.add("confidence", confidence_, "Add 95% confidence intervals by bootstrap resampling");
    options.add("resamples", bootstrap_.resamples, "Resamples of the bootstrap");
    options.add("seed", bootstrap_.seed, "Of the bootstrap");
    options.group("Output");
    options.add("width", width_, "Digits after the point");
    options.add("json", json_, "Print JSON for machines");
  }

  void resolve(const OptionSet& options, const Assignments& config,
               const Assignments& flags) override;
  void require() const override;
  void run(const OptionSet& options) override;

 private:
  void read_text();
  /// Of the whole text.
  Score score_of(Metric metric) const;
  /// Of one line.
  Score score_of(Metric metric, size_t line) const;
  void print_sentences() const;
  ChrfOptions chrf_options(Metric metric) const;

  std::vector<std::string> references_;
  std::string hypothesis_ = "-";
  std::vector<Metric> metrics_ = {Metric::kBleu, Metric::kChrf};
  BleuOptions bleu_;
  BootstrapOptions bootstrap_;
  bool lowercase_ = false;
  bool sentence_ = false;
  bool confidence_ = false;
  bool json_ = false;
  int64_t width_ = 1;

  Lines hypothesis_lines_;
  References reference_lines_;
};

void EvaluateCommand::resolve(const OptionSet& options, const Assignments& config,
                              const Assignments& flags) {
  Command::resolve(options, config, flags);
  bleu_.lowercase = lowercase_;
  if (width_ < 0 || width_ > 15) fail_usage("width: found {}, expected from 0 to 15", width_);
  constexpr int64_t kMostResamples = 1'000'000;
  if (bootstrap_.resamples < 1 || bootstrap_.resamples > kMostResamples) {
    fail_usage("resamples: found {}, expected from 1 to {}", bootstrap_.resamples, kMostResamples);
  }
  if (metrics_.empty()) fail_usage("metrics: found none, expected at least one");
  if (sentence_ && confidence_) {
    fail_usage("sentence and confidence are both given; one line has no confidence interval");
  }
  const bool takes_value =
      bleu_.smoothing == BleuSmoothing::kFloor || bleu_.smoothing == BleuSmoothing::kAddK;
  if (bleu_.smooth_value && !takes_value) {
    fail_usage(
        "smooth_value is given, but the smoothing {} has none; expected smooth floor or add-k",
        name_of(bleu_.smoothing));
  }
}

void EvaluateCommand::require() const {
  if (references_.empty())
    fail_usage("--reference FILE is missing: the translations to compare with");
  for (const std::string& path : references_) {
    if (path == "-" && hypothesis_ == "-") {
      fail_usage("reference and hypothesis are both standard input; name a file for one of them");
    }
  }
}

void EvaluateCommand::read_text() {
  for (const std::string& path : references_) reference_lines_.push_back(read_lines(path));
  hypothesis_lines_ = read_lines(hypothesis_);
  const std::string hypothesis = hypothesis_ == "-" ? "standard input" : hypothesis_;
  for (size_t i = 0; i < references_.size(); ++i) {
    if (reference_lines_[i].size() == hypothesis_lines_.size()) continue;
    fail("{} has {} lines, but the reference {} has {}; expected as many", hypothesis,
         hypothesis_lines_.size(), references_[i], reference_lines_[i].size());
  }
}

ChrfOptions EvaluateCommand::chrf_options(Metric metric) const {
  ChrfOptions options;
  options.lowercase = lowercase_;
  options.word_order = metric == Metric::kChrfPlusPlus ? 2 : 0;
  return options;
}

Score EvaluateCommand::score_of(Metric metric) const {
  const auto with_confidence = [this](Score score, const SegmentStatistics& statistics,
                                      const Scorer& scorer) {
    if (confidence_) add_confidence(score, statistics, scorer, bootstrap_);
    return score;
  };
  check_lines(hypothesis_lines_, reference_lines_);
  if (metric == Metric::kBleu) {
    const auto statistics = bleu_statistics(hypothesis_lines_, reference_lines_, bleu_);
    return with_confidence(bleu_from_statistics(statistics, bleu_), statistics, bleu_scorer(bleu_));
  }
  if (metric == Metric::kTer) {
    const auto statistics = ter_statistics(hypothesis_lines_, reference_lines_);
    return with_confidence(ter_from_statistics(statistics), statistics, ter_scorer());
  }
  const ChrfOptions options = chrf_options(metric);
  const auto statistics = chrf_statistics(hypothesis_lines_, reference_lines_, options);
  return with_confidence(chrf_from_statistics(statistics, options), statistics,
                         chrf_scorer(options));
}

Score EvaluateCommand::score_of(Metric metric, size_t line) const {
  Lines references;
  for (const Lines& set : reference_lines_) references.push_back(set[line]);
  const std::string& hypothesis = hypothesis_lines_[line];
  if (metric == Metric::kBleu) return sentence_bleu(hypothesis, references, bleu_);
  if (metric == Metric::kTer) return sentence_ter(hypothesis, references);
  return sentence_chrf(hypothesis, references, chrf_options(metric));
}

void EvaluateCommand::print_sentences() const {
  Output output("-");
  for (size_t line = 0; line < hypothesis_lines_.size(); ++line) {
    std::string text;
    nlohmann::ordered_json object;
    for (const Metric metric : metrics_) {
      const Score score = score_of(metric, line);
      if (line == 0) logger().info("{}|{}", score.name, score.signature);
      object[score.name] = score.value;
      if (!text.empty()) text += '\t';
      text += score.format_value(static_cast<int>(width_));
    }
    output.write_line(json_ ? object.dump() : text);
  }
  output.finish();
}

nlohmann::ordered_json to_json(const Score& score) {
  nlohmann::ordered_json object;
  object["name"] = score.name;
  object["score"] = score.value;
  object["signature"] = score.signature;
  if (!score.verbose.empty()) object["verbose_score"] = score.verbose;
  for (const auto& [key, value] : signature_fields(score.signature)) object[key] = value;
  if (score.confidence) {
    object["confidence_mean"] = score.confidence->mean;
    object["confidence"] = score.confidence->half_width;
  }
  return object;
}

void EvaluateCommand::run(const OptionSet&) {
  read_text();
  if (sentence_) return print_sentences();
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  std::string text;
  for (const Metric metric : metrics_) {
    const Score score = score_of(metric);
    array.push_back(to_json(score));
    text += score.format(static_cast<int>(width_)) + "\n";
  }
  print(json_ ? array.dump(1) + "\n" : text);
}

}  // namespace

std::unique_ptr<Command> make_evaluate_command() { return std::make_unique<EvaluateCommand>(); }

}  // namespace attend
