#include <unistd.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/base/log.h"
#include "attend/cli/command.h"
#include "attend/cli/evaluation_table.h"
#include "attend/cli/output.h"
#include "attend/data/text.h"
#include "attend/metrics/metric.h"
#include "attend/metrics/significance.h"
#include "attend/metrics/text_check.h"
#include "attend/metrics/unicode.h"

namespace attend {

namespace {
enum class MetricName { kBleu, kChrf, kChrfPlusPlus, kTer };
}  // namespace

template <>
struct Choices<MetricName> {
  static constexpr MetricName kAll[] = {MetricName::kBleu, MetricName::kChrf,
                                        MetricName::kChrfPlusPlus, MetricName::kTer};
};

namespace {

std::string_view name_of(MetricName metric) {
  switch (metric) {
    case MetricName::kBleu:
      return "bleu";
    case MetricName::kChrf:
      return "chrf";
    case MetricName::kChrfPlusPlus:
      return "chrf++";
    case MetricName::kTer:
      return "ter";
  }
  return "?";
}

std::string file_name(const std::string& path) { return path == "-" ? "standard input" : path; }

constexpr std::string_view kDetails =
    "The scores are sacreBLEU's to the last digit, and each line starts with the signature that "
    "says how\nthe score was made (docs/evaluating.md). Several hypotheses give a table, a row a "
    "system; with\n--paired-bootstrap or --paired-ar each is compared with the first. With "
    "--sentence there is one\nline of output a line of input: its scores in the order of "
    "--metrics, "
    "with tabs between them. With\n--json the result is an array with an object a metric, or a "
    "system, or, with --sentence, an object\na line.";

class EvaluateCommand : public Command {
 public:
  std::string_view name() const override { return "evaluate"; }
  std::string_view summary() const override {
    return "Score translations against references with BLEU, chrF, chrF++ and TER";
  }
  std::string_view details() const override { return kDetails; }

  void define(OptionSet& options) override;
  void resolve(const OptionSet& options, const Assignments& config,
               const Assignments& flags) override;
  void require() const override;
  void run(const OptionSet& options) override;

 private:
  bool is_paired() const { return paired_bootstrap_ || paired_ar_; }
  void define_metrics(OptionSet& options);
  void check_metrics() const;
  void refuse_same_systems() const;
  void read_text();
  void refuse_lines_without_reference() const;
  /// Reads a file and warns of what looks wrong in it.
  Lines read_side(const std::string& path) const;
  Metric metric_of(MetricName name) const;
  void print_sentences() const;
  void print_scores() const;
  void print_table() const;
  EvaluationTable::Column column_of(MetricName name) const;

  std::vector<std::string> references_;
  bool missing_references_ = false;
  std::vector<std::string> hypotheses_ = {"-"};
  std::vector<MetricName> metrics_ = {MetricName::kBleu, MetricName::kChrf};
  BleuOptions bleu_;
  bool effective_order_ = false;
  ChrfOptions chrf_;
  int64_t chrf_word_order_ = 2;
  TerOptions ter_;
  BootstrapOptions bootstrap_;
  RandomizationOptions randomization_;
  bool lowercase_ = false;
  bool sentence_ = false;
  bool confidence_ = false;
  bool paired_bootstrap_ = false;
  bool paired_ar_ = false;
  bool json_ = false;
  bool force_ = false;
  int64_t width_ = 1;

  std::vector<Lines> hypothesis_lines_;
  References reference_lines_;
};

void EvaluateCommand::define(OptionSet& options) {
  options.group("Text");
  options.add("reference", references_, "Reference translations, one file a set; .gz or not")
      .metavar("FILE");
  options.add(
      "missing_references", missing_references_,
      "An empty line of a reference file says that this line has no such reference, and not "
      "that the reference is empty");
  options
      .add("hypothesis", hypotheses_,
           "The translations to score, one file a system; - is standard input")
      .metavar("FILE");
  options.add("force", force_, "Do not warn of text that looks tokenized or otherwise wrong");
  define_metrics(options);
  options.group("Significance");
  options.add("confidence", confidence_, "Add 95% confidence intervals by bootstrap resampling");
  options.add("paired_bootstrap", paired_bootstrap_,
              "Compare each system with the first by paired bootstrap resampling");
  options.add("paired_ar", paired_ar_,
              "Compare each system with the first by paired approximate randomization");
  options.add("resamples", bootstrap_.resamples, "Resamples of the bootstrap");
  options.add("trials", randomization_.trials, "Trials of approximate randomization");
  options.add("seed", bootstrap_.seed, "Of the random numbers of all three");
  options.group("Output");
  options.add("sentence", sentence_, "Score each line by itself");
  options.add("width", width_, "Digits after the point");
  options.add("json", json_, "Print JSON for machines");
}

void EvaluateCommand::define_metrics(OptionSet& options) {
  options.group("Metrics");
  options.add("metrics", metrics_, "What to compute, with commas or spaces between them");
  options.add("lowercase", lowercase_, "Ignore case in BLEU and chrF (TER does unless told)");
  options.add("tokenize", bleu_.tokenizer, "How BLEU cuts lines into words");
  options
      .add("tokenizer_model", bleu_.tokenizer_model,
           "What --tokenize needs: the SentencePiece model of spm, flores101, flores200 or "
           "spBLEU-1K; "
           "the dictionary of ja-mecab or ko-mecab, where it is not at its usual place")
      .metavar("FILE");
  options.add("smooth", bleu_.smoothing, "What BLEU does about n-gram orders without a match");
  options.add("smooth_value", bleu_.smooth_value,
              "Of the smoothings floor (auto: 0.1) and add-k (auto: 1)");
  options.add("max_ngram_order", bleu_.max_ngram_order, "Longest n-grams of BLEU");
  options.add("effective_order", effective_order_,
              "BLEU leaves out the orders that a text is too short for; with --sentence always");
  options.add("chrf_char_order", chrf_.char_order, "Longest character n-grams of chrF and chrF++");
  options.add("chrf_word_order", chrf_word_order_, "Longest word n-grams of chrF++");
  options.add("chrf_beta", chrf_.beta, "How many times chrF weighs recall more than precision");
  options.add("chrf_whitespace", chrf_.whitespace, "chrF counts spaces as characters");
  options.add("chrf_eps_smoothing", chrf_.eps_smoothing,
              "chrF averages F-scores over all orders, as chrF++.py, NLTK and Moses do");
  options.add("ter_normalized", ter_.normalized, "TER separates punctuation from words");
  options.add("ter_no_punct", ter_.no_punct, "TER leaves out punctuation");
  options.add("ter_asian_support", ter_.asian_support,
              "TER does those two to Asian characters, too");
  options.add("ter_case_sensitive", ter_.case_sensitive, "TER tells capitals from small letters");
}

void EvaluateCommand::resolve(const OptionSet& options, const Assignments& config,
                              const Assignments& flags) {
  Command::resolve(options, config, flags);
  bleu_.lowercase = chrf_.lowercase = lowercase_;
  bleu_.effective_order = effective_order_ || sentence_;
  randomization_.seed = bootstrap_.seed;
  if (width_ < 0 || width_ > 15) fail_usage("width: found {}, expected from 0 to 15", width_);
  constexpr int64_t kMost = 1'000'000;
  if (bootstrap_.resamples < 1 || bootstrap_.resamples > kMost) {
    fail_usage("resamples: found {}, expected from 1 to {}", bootstrap_.resamples, kMost);
  }
  if (randomization_.trials < 1 || randomization_.trials > kMost) {
    fail_usage("trials: found {}, expected from 1 to {}", randomization_.trials, kMost);
  }
  if (metrics_.empty()) fail_usage("metrics: found none, expected at least one");
  if (paired_bootstrap_ && paired_ar_) {
    fail_usage("paired_bootstrap and paired_ar are both given; expected one of them");
  }
  if (sentence_ && (confidence_ || is_paired())) {
    fail_usage("sentence and {} are both given; one line has no statistics",
               confidence_ ? "confidence" : "a paired test");
  }
  if (ter_.asian_support && !ter_.normalized && !ter_.no_punct) {
    fail_usage("ter_asian_support changes nothing without ter_normalized or ter_no_punct");
  }
  check_metrics();
}

/// Two metrics of one name would be one in JSON.
void EvaluateCommand::check_metrics() const {
  for (auto metric = metrics_.begin(); metric != metrics_.end(); ++metric) {
    if (std::find(metrics_.begin(), metric, *metric) != metric) {
      fail_usage("metrics: {} is given twice", name_of(*metric));
    }
    if (*metric == MetricName::kChrfPlusPlus && chrf_word_order_ == 0) {
      fail_usage(
          "chrf_word_order: found 0, expected 1 or more for chrf++; without words it is chrf");
    }
    metric_of(*metric);  // checks its options
  }
}

/// A file compared with itself, by whatever names, would look like two systems that are equal.
void EvaluateCommand::refuse_same_systems() const {
  for (auto one = hypotheses_.begin(); one != hypotheses_.end(); ++one) {
    const auto identity = identity_of_file(*one, STDIN_FILENO);
    const auto same = std::find_if(hypotheses_.begin(), one, [&](const std::string& other) {
      return other == *one || (identity && identity_of_file(other, STDIN_FILENO) == identity);
    });
    if (same == one) continue;
    const std::string as = *same == *one ? "" : fmt::format(", as {} too", file_name(*same));
    fail_usage("hypothesis: {} is given twice{}; expected different systems", file_name(*one), as);
  }
}

void EvaluateCommand::require() const {
  if (references_.empty()) {
    fail_usage("--reference FILE is missing: the translations to compare with");
  }
  if (hypotheses_.empty()) fail_usage("hypothesis: found none, expected at least one");
  refuse_same_systems();
  std::vector<std::string> files = hypotheses_;
  files.insert(files.end(), references_.begin(), references_.end());
  if (std::count(files.begin(), files.end(), "-") > 1) {
    fail_usage("reference and hypothesis are both standard input; name a file for one of them");
  }
  if (is_paired() && hypotheses_.size() < 2) {
    fail_usage(
        "a paired test compares systems: expected two files or more after --hypothesis, the "
        "baseline first");
  }
  if (sentence_ && hypotheses_.size() > 1) {
    fail_usage("sentence scores one system: found {} files after --hypothesis", hypotheses_.size());
  }
}

Lines EvaluateCommand::read_side(const std::string& path) const {
  Lines lines = read_lines(path);
  // As sacreBLEU's command does: spaces at the end of a line count in no metric.
  for (std::string& line : lines) line.resize(strip_right(line).size());
  if (force_) return lines;
  for (const std::string& suspicion : suspicions_about(lines)) {
    logger().warn("{}: {}", file_name(path), suspicion);
  }
  return lines;
}

void EvaluateCommand::read_text() {
  for (const std::string& path : references_) {
    Lines& lines = reference_lines_.emplace_back(read_side(path));
    if (!missing_references_) continue;
    for (std::string& line : lines) {
      if (line.empty()) line = std::string(kNoReference);
    }
  }
  for (const std::string& path : hypotheses_) {
    const Lines& lines = hypothesis_lines_.emplace_back(read_side(path));
    for (size_t i = 0; i < references_.size(); ++i) {
      if (reference_lines_[i].size() == lines.size()) continue;
      fail("{} has {}, but the reference {} has {}; expected as many", file_name(path),
           counted(std::ssize(lines), "line"), file_name(references_[i]),
           counted(std::ssize(reference_lines_[i]), "line"));
    }
  }
  if (missing_references_) refuse_lines_without_reference();
}

void EvaluateCommand::refuse_lines_without_reference() const {
  for (size_t line = 0; line < reference_lines_[0].size(); ++line) {
    if (!references_of(reference_lines_, line).empty()) continue;
    std::string files;
    for (const std::string& path : references_) {
      files += (files.empty() ? "" : ", ") + file_name(path);
    }
    fail_usage(
        "missing_references: line {} has no reference, as it is empty in {}; expected one at "
        "least, or no --missing-references",
        line + 1, files);
  }
}

Metric EvaluateCommand::metric_of(MetricName name) const {
  if (name == MetricName::kBleu) return make_metric(bleu_);
  if (name == MetricName::kTer) return make_metric(ter_);
  ChrfOptions options = chrf_;
  options.word_order = name == MetricName::kChrfPlusPlus ? chrf_word_order_ : 0;
  return make_metric(options);
}

void EvaluateCommand::print_sentences() const {
  std::vector<Metric> metrics;
  std::vector<SegmentStatistics> statistics;
  std::vector<std::string> names;
  for (const MetricName name : metrics_) {
    const Metric& metric = metrics.emplace_back(metric_of(name));
    statistics.push_back(metric.statistics(hypothesis_lines_[0], reference_lines_));
    const Score score = metric.score(statistics.back());
    names.push_back(score.name);
    logger().info("{}|{}", score.name, score.signature);
  }
  Output output("-");
  for (size_t line = 0; line < statistics[0].size(); ++line) {
    std::string text;
    nlohmann::ordered_json object;
    for (size_t m = 0; m < metrics.size(); ++m) {
      const double value = metrics[m].scorer(statistics[m].row(line));
      object[names[m]] = value;
      text += fmt::format("{}{:.{}f}", m == 0 ? "" : "\t", value, width_);
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

void EvaluateCommand::print_scores() const {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  std::string text;
  for (const MetricName name : metrics_) {
    const Metric metric = metric_of(name);
    const SegmentStatistics statistics = metric.statistics(hypothesis_lines_[0], reference_lines_);
    Score score = metric.score(statistics);
    if (confidence_) add_confidence(score, statistics, metric.scorer, bootstrap_);
    array.push_back(to_json(score));
    text += score.format(static_cast<int>(width_)) + "\n";
  }
  print(json_ ? array.dump(1) + "\n" : text);
}

EvaluationTable::Column EvaluateCommand::column_of(MetricName name) const {
  const Metric metric = metric_of(name);
  std::vector<SegmentStatistics> systems;
  for (const Lines& lines : hypothesis_lines_) {
    systems.push_back(metric.statistics(lines, reference_lines_));
  }
  const Score score = metric.score(systems[0]);
  EvaluationTable::Column column{score.name, score.signature, {}};
  if (paired_ar_) {
    column.results = paired_randomization(systems, metric.scorer, randomization_);
    column.signature =
        signature_with(score.signature, "ar", randomization_.trials, randomization_.seed);
    return column;
  }
  if (paired_bootstrap_) {
    column.results = paired_bootstrap(systems, metric.scorer, bootstrap_);
  } else {
    for (const SegmentStatistics& system : systems) {
      PairedResult& result = column.results.emplace_back();
      result.value = metric.scorer(system.sum());
      if (confidence_) result.confidence = bootstrap_confidence(system, metric.scorer, bootstrap_);
    }
  }
  if (paired_bootstrap_ || confidence_) {
    column.signature = signature_with(score.signature, "bs", bootstrap_.resamples, bootstrap_.seed);
  }
  return column;
}

void EvaluateCommand::print_table() const {
  EvaluationTable table{hypotheses_, {}, ""};
  if (paired_bootstrap_) {
    table.test = fmt::format("Paired bootstrap, {} resamples", bootstrap_.resamples);
  } else if (paired_ar_) {
    table.test = fmt::format("Paired approximate randomization, {} trials", randomization_.trials);
  }
  for (const MetricName name : metrics_) table.columns.push_back(column_of(name));
  print(json_ ? to_json(table).dump(1) + "\n" : to_text(table, static_cast<int>(width_)));
}

void EvaluateCommand::run(const OptionSet&) {
  read_text();
  if (sentence_) return print_sentences();
  if (hypotheses_.size() > 1) return print_table();
  print_scores();
}

}  // namespace

std::unique_ptr<Command> make_evaluate_command() { return std::make_unique<EvaluateCommand>(); }

}  // namespace attend
