#include "attend/report/report.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/base/version.h"
#include "attend/metrics/chrf.h"
#include "attend/report/page.h"
#include "attend/report/run_facts.h"
#include "attend/report/samples.h"
#include "attend/report/series.h"
#include "attend/report/translations.h"
#include "attend/search/options.h"
#include "attend/train/tensorboard_log.h"

namespace attend {
namespace {

using Json = nlohmann::ordered_json;

/// A run while the page is made.
struct Subject {
  const ReportedRun* run;
  RunHistory history;
  Json facts;
  Notes notes;
  std::unique_ptr<RunModel> model;
  std::optional<ScoredText> validation;
  std::vector<std::string> of_validation;  ///< its translations
  std::vector<std::string> of_test;
};

void translate(Subject& subject, const std::optional<ScoredText>& test,
               const ReportOptions& options) {
  subject.facts["scores"] = Json::array();
  subject.validation = validation_text(*subject.run, subject.notes);
  subject.model = RunModel::open(*subject.run, options, subject.notes);
  if (subject.model == nullptr) return;
  const auto score = [&](const ScoredText& text, std::vector<std::string>& translations) {
    logger().info("{}: translating {} lines of {}", subject.run->folder.string(),
                  text.lines.source.size(), text.files);
    translations = subject.model->translate(text.lines.source);
    for (Json& each : scores_of(text, translations, options.bleu)) {
      subject.facts["scores"].push_back(std::move(each));
    }
  };
  if (subject.validation) score(*subject.validation, subject.of_validation);
  if (test) score(*test, subject.of_test);
}

/// What one run made of the text that the samples are from.
struct Candidate {
  std::size_t run;
  const RunModel* model;
  const std::vector<std::string>* translations;
};

/// The sentences that are shown, from the validation text of the first run that has one, else from
/// the test text, with what all runs made of it that have translated the same.
class SampleMaker {
 public:
  SampleMaker(const std::vector<Subject>& subjects, const std::optional<ScoredText>& test,
              const ReportOptions& options);
  void add_to(Json& page) const;

 private:
  double chrf_of(const Candidate& candidate, std::size_t line) const;
  std::vector<double> mean_scores() const;
  Json sample(const Sample& which) const;
  bool add_attention(Json& sample, std::size_t line) const;

  const ReportOptions& options_;
  const ScoredText* text_ = nullptr;
  std::vector<Candidate> candidates_;
};

SampleMaker::SampleMaker(const std::vector<Subject>& subjects,
                         const std::optional<ScoredText>& test, const ReportOptions& options)
    : options_(options) {
  const auto first = std::find_if(subjects.begin(), subjects.end(),
                                  [](const Subject& each) { return !each.of_validation.empty(); });
  const bool from_validation = first != subjects.end();
  if (from_validation) {
    text_ = &*first->validation;
  } else if (test) {
    text_ = &*test;
  }
  for (std::size_t i = 0; text_ != nullptr && i < subjects.size(); ++i) {
    const Subject& each = subjects[i];
    const bool same = !from_validation ||
                      (each.validation && each.validation->lines.source == text_->lines.source &&
                       each.validation->lines.target == text_->lines.target);
    const auto& translations = from_validation ? each.of_validation : each.of_test;
    if (same && !translations.empty()) candidates_.push_back({i, each.model.get(), &translations});
  }
}

double SampleMaker::chrf_of(const Candidate& candidate, std::size_t line) const {
  return sentence_chrf((*candidate.translations)[line], {text_->lines.target[line]},
                       {.lowercase = options_.bleu.lowercase})
      .value;
}

std::vector<double> SampleMaker::mean_scores() const {
  std::vector<double> scores(text_->lines.source.size());
  for (std::size_t line = 0; line < scores.size(); ++line) {
    for (const Candidate& each : candidates_) scores[line] += chrf_of(each, line);
  }
  return scores;
}

Json SampleMaker::sample(const Sample& which) const {
  const std::string& reference = text_->lines.target[which.line];
  Json json{{"line", which.line + 1},
            {"kind", name_of(which.kind)},
            {"source", text_->lines.source[which.line]},
            {"reference", reference},
            {"translations", Json::array()}};
  for (const Candidate& each : candidates_) {
    const std::string& translation = (*each.translations)[which.line];
    json["translations"].push_back(
        {{"run", each.run},
         {"text", translation},
         {"chrf", rounded(chrf_of(each, which.line))},
         {"bleu", rounded(sentence_bleu(translation, {reference}, options_.bleu).value)}});
  }
  return json;
}

/// Whether there was any that can be shown.
bool SampleMaker::add_attention(Json& sample, std::size_t line) const {
  bool any = false;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    Json map = candidates_[i].model->attention(text_->lines.source[line],
                                               (*candidates_[i].translations)[line]);
    any = any || !map.is_null();
    sample["translations"][i]["attention"] = std::move(map);
  }
  return any;
}

void SampleMaker::add_to(Json& page) const {
  page["samples"] = Json::array();
  if (candidates_.empty()) return;
  page["sampled"] = {{"text", text_->what},
                     {"files", text_->files},
                     {"sentences", text_->lines.source.size()},
                     {"seed", options_.seed}};
  int64_t attention_left = options_.attention;
  for (const Sample& which :
       choose_samples(text_->lines.source, mean_scores(), options_.samples, options_.seed)) {
    Json json = sample(which);
    if (attention_left > 0 && add_attention(json, which.line)) --attention_left;
    page["samples"].push_back(std::move(json));
  }
}

std::string title_of(const std::vector<std::string>& names) {
  constexpr std::size_t kMostNamed = 3;
  std::string title;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNamed); ++i) {
    title += (i > 0 ? ", " : "") + names[i];
  }
  if (names.size() > kMostNamed) title += fmt::format(" and {} more", names.size() - kMostNamed);
  return title;
}

std::string last_parts(const Path& path, std::ptrdiff_t count) {
  const Path parts = path.relative_path();
  auto part = parts.end();
  for (; count > 0 && part != parts.begin(); --count) --part;
  Path last;
  for (; part != parts.end(); ++part) last /= *part;
  return last.string();
}

/// As many of the last parts of `path` as no other path ends in.
std::string shortest_name(const Path& path, const std::vector<Path>& paths) {
  const auto most = std::distance(path.begin(), path.end());
  std::ptrdiff_t count = 1;
  const auto is_taken = [&](const Path& other) {
    return other != path && last_parts(other, count) == last_parts(path, count);
  };
  while (count < most && std::any_of(paths.begin(), paths.end(), is_taken)) ++count;
  const std::string name = last_parts(path, count);
  return name.empty() ? "root" : name;
}

}  // namespace

std::string ReportedRun::value_of(std::string_view option) const {
  const auto found = std::find_if(recipe.begin(), recipe.end(),
                                  [&](const RecipeOption& each) { return each.name == option; });
  return found == recipe.end() ? "" : found->value;
}

void ReportOptions::validate() const {
  const auto at_least = [](const char* option, int64_t value, int64_t least) {
    if (value >= least) return;
    fail_usage("{}: found {}, expected a whole number from {}", option, value, least);
  };
  at_least("samples", samples, 0);
  at_least("attention", attention, 0);
  at_least("beam_size", beam_size, 0);
  if (beam_size > 0) SearchOptions{.beam_size = beam_size}.validate();
  at_least("workers", workers, 0);
  load_bleu_tokenizer(bleu.tokenizer, bleu.tokenizer_model);  // whether there is one
  if (test_source.empty() != test_target.empty()) {
    fail_usage("test_source and test_target: found only one of them, expected both or none");
  }
  if (length_penalty && (!std::isfinite(*length_penalty) || *length_penalty < 0)) {
    fail_usage("length_penalty: found {}, expected a number of at least 0", *length_penalty);
  }
}

std::vector<std::string> names_of(const std::vector<Path>& folders) {
  std::vector<Path> paths;
  std::vector<std::string> names;
  for (const Path& folder : folders) {
    Path path = std::filesystem::absolute(folder).lexically_normal();
    if (!path.has_filename()) path = path.parent_path();  // "run/"
    if (std::find(paths.begin(), paths.end(), path) != paths.end()) {
      fail_usage("runs: {} is given twice; expected different runs", path.string());
    }
    paths.push_back(std::move(path));
  }
  for (const Path& path : paths) names.push_back(shortest_name(path, paths));
  return names;
}

std::string make_report(const std::vector<ReportedRun>& runs, const ReportOptions& options) {
  options.validate();
  std::vector<Path> folders;
  for (const ReportedRun& run : runs) folders.push_back(run.folder);
  const std::vector<std::string> names = names_of(folders);
  std::vector<Subject> subjects;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Subject& subject = subjects.emplace_back(Subject{.run = &runs[i], .history = {}});
    subject.history = history_of(runs[i].folder);
    subject.facts["name"] = names[i];
    subject.facts.update(facts_of(runs[i], subject.history, subject.notes));
  }
  const std::optional<ScoredText> test = test_text(options);
  Json page{{"version", kVersion}, {"title", title_of(names)}, {"runs", Json::array()}};
  if (options.translate) {
    for (Subject& subject : subjects) translate(subject, test, options);
    SampleMaker(subjects, test, options).add_to(page);
  }
  page["translated"] = options.translate;
  for (Subject& subject : subjects) {
    subject.facts["notes"] = subject.notes;
    page["runs"].push_back(std::move(subject.facts));
  }
  return page_of(title_of(names), page);
}

void write_tensorboard(const Path& run, const Path& folder) {
  const RunHistory history = history_of(run);
  TensorboardLog log(folder, history.started, 0);
  auto training = history.training.begin();
  for (const RunHistory::Validation& each : history.validations) {
    for (;
         training != history.training.end() && training->progress.done.updates <= each.done.updates;
         ++training) {
      log.progress(training->time, training->progress);
    }
    log.validation(each.time, each.done, each.scores);
  }
  for (; training != history.training.end(); ++training) {
    log.progress(training->time, training->progress);
  }
  if (log.file().problem() != 0) fail_on_file("write", log.file().path(), log.file().problem());
}

}  // namespace attend
