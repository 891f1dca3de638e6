#include "attend/data/corpus.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <future>
#include <span>
#include <string_view>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/worker_pool.h"
#include "attend/data/fingerprint.h"

namespace attend {
namespace {

constexpr int64_t kPairsAtOnce = 1024;

struct TextPair {
  std::string source;
  std::string target;
};

/// Some pairs after tokenizing and filtering.
struct Tokenized {
  std::vector<std::vector<int32_t>> source;
  std::vector<std::vector<int32_t>> target;
  CorpusReport report;
};

/// Tokenizes pairs and says which are left out, and why.
class Filter {
 public:
  Filter(const CorpusOptions& options, const Tokenizer& source, const Tokenizer& target)
      : options_(options), source_(source), target_(target) {}

  Tokenized operator()(const std::vector<TextPair>& pairs) const {
    Tokenized made;
    for (const TextPair& pair : pairs) {
      ++made.report.pairs_read;
      add(pair, made);
    }
    return made;
  }

 private:
  void add(const TextPair& pair, Tokenized& made) const {
    if (!valid_utf8(pair.source) || !valid_utf8(pair.target)) {
      ++made.report.bad_utf8;
    } else if (is_blank(pair.source) || is_blank(pair.target)) {
      ++made.report.empty;
    } else if (surely_too_long(pair.source, source_) || surely_too_long(pair.target, target_)) {
      ++made.report.too_long;
    } else {
      add_tokens(source_.encode(pair.source), target_.encode(pair.target), made);
    }
  }

  void add_tokens(std::vector<int32_t> source, std::vector<int32_t> target, Tokenized& made) const {
    const auto shorter = static_cast<double>(std::min(source.size(), target.size()));
    const auto longer = static_cast<double>(std::max(source.size(), target.size()));
    if (options_.max_length > 0 && longer > static_cast<double>(options_.max_length)) {
      ++made.report.too_long;
    } else if (shorter == 0) {  // a tokenizer that normalises may leave nothing
      ++made.report.empty;
    } else if (options_.max_length_ratio > 0 && longer > options_.max_length_ratio * shorter) {
      ++made.report.length_ratio;
    } else {
      ++made.report.pairs_kept;
      made.source.push_back(std::move(source));
      made.target.push_back(std::move(target));
    }
  }

  /// So many bytes that max_length tokens cannot hold them, even where a normaliser shortens the
  /// text: not worth the memory of tokenizing it.
  bool surely_too_long(std::string_view text, const Tokenizer& tokenizer) const {
    constexpr int64_t kShortening = 4;
    return options_.max_length > 0 &&
           static_cast<int64_t>(text.size()) / tokenizer.longest_piece() / kShortening >
               options_.max_length;
  }

  const CorpusOptions& options_;
  const Tokenizer& source_;
  const Tokenizer& target_;
};

void check_options(const CorpusOptions& options) {
  if (options.corpora.empty())
    fail_usage("there is no training data; expected at least one corpus");
  for (const ParallelFiles& files : options.corpora) {
    constexpr double kLargestWeight = 1e6;
    if (!(files.weight > 0 && files.weight <= kLargestWeight)) {
      fail_usage("the weight of {} is {}; expected more than 0 and at most {}", files.name(),
                 files.weight, kLargestWeight);
    }
  }
  if (options.max_length < 0) {
    fail_usage("max_length is {}; expected a number of tokens, or 0 for no limit",
               options.max_length);
  }
  if (!(options.max_length_ratio == 0 || options.max_length_ratio >= 1)) {
    fail_usage("max_length_ratio is {}; expected at least 1, or 0 for no limit",
               options.max_length_ratio);
  }
  if (options.threads < 0) {
    fail_usage("threads is {}; expected a number, or 0 for one a core", options.threads);
  }
}

void require_token(int32_t id, std::string_view name, std::string_view side) {
  if (id < 0) {
    fail(
        "the {} tokenizer has no {} token; train one with attend, or with SentencePiece's --bos_id "
        "and --eos_id",
        side, name);
  }
}

int64_t threads_of(const CorpusOptions& options) {
  if (options.threads > 0) return options.threads;
  return available_cores();
}

/// Reads up to kPairsAtOnce pairs.
std::vector<TextPair> read_pairs(ParallelReader& reader) {
  std::vector<TextPair> pairs;
  TextPair pair;
  while (std::ssize(pairs) < kPairsAtOnce && reader.next(pair.source, pair.target)) {
    pairs.push_back(std::exchange(pair, {}));
  }
  return pairs;
}

std::string_view as_bytes(const std::vector<int32_t>& tokens) {
  return {reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(int32_t)};
}

}  // namespace

int64_t CorpusReport::left_out() const {
  return empty + too_long + length_ratio + bad_utf8 + bad_lines;
}

CorpusReport& CorpusReport::operator+=(const CorpusReport& other) {
  pairs_read += other.pairs_read;
  pairs_kept += other.pairs_kept;
  empty += other.empty;
  too_long += other.too_long;
  length_ratio += other.length_ratio;
  bad_utf8 += other.bad_utf8;
  bad_lines += other.bad_lines;
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

nlohmann::json CorpusReport::to_json() const {
  return {{"pairs_read", pairs_read}, {"pairs_kept", pairs_kept},     {"empty", empty},
          {"too_long", too_long},     {"length_ratio", length_ratio}, {"bad_utf8", bad_utf8},
          {"bad_lines", bad_lines}};
}

ParallelCorpus ParallelCorpus::load(const CorpusOptions& options, const Tokenizer& source_tokenizer,
                                    const Tokenizer& target_tokenizer) {
  check_options(options);
  require_token(source_tokenizer.eos_id(), "EOS", "source");
  require_token(target_tokenizer.eos_id(), "EOS", "target");
  require_token(target_tokenizer.bos_id(), "BOS", "target");
  ParallelCorpus corpus;
  corpus.source_eos_ = source_tokenizer.eos_id();
  corpus.target_bos_ = target_tokenizer.bos_id();
  corpus.target_eos_ = target_tokenizer.eos_id();
  corpus.store_ =
      TokenStore(std::max(source_tokenizer.vocabulary_size(), target_tokenizer.vocabulary_size()));
  for (const ParallelFiles& files : options.corpora) {
    corpus.load_part(files, options, source_tokenizer, target_tokenizer);
  }
  corpus.finish();
  return corpus;
}

void ParallelCorpus::load_part(const ParallelFiles& files, const CorpusOptions& options,
                               const Tokenizer& source_tokenizer,
                               const Tokenizer& target_tokenizer) {
  Part part{.name = files.name(), .weight = files.weight, .begin = pairs(), .end = 0, .report = {}};
  const Filter filter(options, source_tokenizer, target_tokenizer);
  ParallelReader reader(files, options.skip_bad_lines, {.refuse_binary = true});
  std::deque<std::future<Tokenized>> in_work;
  const auto take_first = [&] {
    const Tokenized made = in_work.front().get();
    in_work.pop_front();
    part.report += made.report;
    for (std::size_t i = 0; i < made.source.size(); ++i) add_pair(made.source[i], made.target[i]);
  };
  for (;;) {
    std::vector<TextPair> read = read_pairs(reader);
    if (read.empty()) break;
    if (std::ssize(in_work) == threads_of(options)) take_first();
    in_work.push_back(
        std::async(std::launch::async, [&filter, read = std::move(read)] { return filter(read); }));
  }
  while (!in_work.empty()) take_first();
  part.report.bad_lines = reader.bad_lines();
  part.end = pairs();
  parts_.push_back(std::move(part));
}

void ParallelCorpus::add_pair(std::span<const int32_t> source, std::span<const int32_t> target) {
  store_.append(source, target);
  source_tokens_ += std::ssize(source);
  target_tokens_ += std::ssize(target);
}

void ParallelCorpus::finish() {
  if (pairs() == 0) {
    std::string names;
    for (const Part& part : parts_) names += (names.empty() ? "" : ", ") + part.name;
    fail("there is no pair to use in {}: {} pairs read, {}", names, report().pairs_read,
         report().to_string());
  }
  Fingerprint fingerprint;
  std::vector<int32_t> tokens;
  for (int64_t pair = 0; pair < pairs(); ++pair) {
    tokens.assign(
        {static_cast<int32_t>(source_length(pair)), static_cast<int32_t>(target_length(pair))});
    append_source(pair, tokens);
    append_target(pair, tokens);
    fingerprint.add(as_bytes(tokens));
  }
  fingerprint_ = fingerprint.hex();
}

void ParallelCorpus::append_source(int64_t pair, std::vector<int32_t>& tokens) const {
  store_.append_source(pair, tokens);
}

void ParallelCorpus::append_target(int64_t pair, std::vector<int32_t>& tokens) const {
  store_.append_target(pair, tokens);
}

CorpusReport ParallelCorpus::report() const {
  CorpusReport total;
  for (const Part& part : parts_) total += part.report;
  return total;
}

}  // namespace attend
