#include "attend/data/parallel_text.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "attend/base/error.h"

namespace attend {
namespace {

/// How many lines the file has, of which the reader has given some.
int64_t count_lines(LineReader& reader) {
  for (std::string line; reader.next(line);) {
  }
  return reader.line_number();
}

void check_names(const ParallelFiles& files) {
  const bool two = !files.source.empty() && !files.target.empty();
  const bool none = files.source.empty() && files.target.empty();
  if (files.tsv.empty() ? two : none) return;
  fail_usage(
      "a corpus is a source and a target file, or one TSV; found source '{}', target '{}', TSV "
      "'{}'",
      files.source, files.target, files.tsv);
}

/// A pipe is known before it is opened, which would wait for somebody to write into it.
void refuse_pipe(const std::string& path) {
  using std::filesystem::file_type;
  std::error_code error;
  const file_type type =
      path == "-" ? file_type::fifo : std::filesystem::status(path, error).type();
  for (const file_type each : {file_type::fifo, file_type::character, file_type::socket}) {
    if (type != each) continue;
    fail(
        "{} is no regular file, and text for training and validation is read more than once; write "
        "it to a file and give that",
        path == "-" ? "standard input (-)" : path);
  }
}

}  // namespace

std::string ParallelFiles::name() const { return tsv.empty() ? source + " and " + target : tsv; }

std::vector<std::string> ParallelFiles::paths() const {
  return tsv.empty() ? std::vector{source, target} : std::vector{tsv};
}

void ParallelFiles::refuse_pipes() const {
  check_names(*this);
  for (const std::string& path : paths()) refuse_pipe(path);
}

void ParallelFiles::check() const {
  refuse_pipes();
  for (const std::string& path : paths()) {
    std::string line;
    LineReader(path, {.refuse_binary = true}).next(line);
  }
}

ParallelReader::ParallelReader(const ParallelFiles& files, bool skip_bad_lines, TextUse use)
    : skip_bad_lines_(skip_bad_lines) {
  if (use == TextUse::kLearning) files.refuse_pipes();
  const ReadOptions options{.refuse_binary = use == TextUse::kLearning};
  if (!files.tsv.empty()) {
    source_ = std::make_unique<LineReader>(files.tsv, options);
    return;
  }
  source_ = std::make_unique<LineReader>(files.source, options);
  target_ = std::make_unique<LineReader>(files.target, options);
}

bool ParallelReader::next(std::string& source, std::string& target) {
  return target_ != nullptr ? next_of_two(source, target) : next_of_tsv(source, target);
}

int64_t ParallelReader::bytes_read() const {
  return source_->bytes_read() + (target_ != nullptr ? target_->bytes_read() : 0);
}

bool ParallelReader::next_of_two(std::string& source, std::string& target) {
  const bool has_source = source_->next(source), has_target = target_->next(target);
  if (has_source == has_target) return has_source;
  const int64_t source_lines = count_lines(*source_), target_lines = count_lines(*target_);
  fail(
      "{} has {} lines but {} has {}; the two must have equally many, line by line a translation "
      "of "
      "each other",
      source_->name(), source_lines, target_->name(), target_lines);
}

bool ParallelReader::next_of_tsv(std::string& source, std::string& target) {
  while (source_->next(source)) {
    const auto tabs = std::count(source.begin(), source.end(), '\t');
    if (tabs == 1) {
      const std::size_t tab = source.find('\t');
      target.assign(source, tab + 1);
      source.resize(tab);
      return true;
    }
    if (!skip_bad_lines_) {
      fail(
          "{}, line {}: it has {} tabs; expected one, between source and target (or leave such "
          "lines out with --skip-bad-lines)",
          source_->name(), source_->line_number(), tabs);
    }
    ++bad_lines_;
  }
  return false;
}

ParallelText read_parallel_text(const ParallelFiles& files, bool skip_bad_lines) {
  ParallelReader reader(files, skip_bad_lines);
  ParallelText text;
  for (std::string source, target; reader.next(source, target);) {
    text.source.push_back(source);
    text.target.push_back(target);
  }
  return text;
}

}  // namespace attend
