#include "attend/data/corpus_reader.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "attend/base/worker_pool.h"

namespace attend {
namespace {

constexpr int64_t kChunkPairs = 1024;
constexpr int64_t kCommitPairs = 128 * kChunkPairs;

}  // namespace

int64_t bytes_on_disk(const ParallelFiles& files) {
  int64_t bytes = 0;
  for (const std::string& path : files.paths()) {
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    if (!error) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

CorpusReader::CorpusReader(const CorpusOptions& options, const PairTokenizer& tokenize,
                           TokenStore& store, CorpusSummary& summary)
    : options_(options),
      tokenize_(tokenize),
      store_(store),
      summary_(summary),
      // One more than work at once, so that none waits while the first one's result is taken.
      most_in_work_(1 + (options.threads > 0 ? options.threads : available_cores())) {
  for (const ParallelFiles& files : options.corpora) bytes_in_all_ += bytes_on_disk(files);
}

void CorpusReader::read() {
  // Of the last corpus, too, before hours go into the first.
  for (const ParallelFiles& files : options_.corpora) files.check();
  for (std::size_t i = 0; i < options_.corpora.size(); ++i) {
    const ParallelFiles& files = options_.corpora[i];
    if (i == summary_.parts.size()) {
      summary_.parts.push_back({.begin = summary_.pairs, .end = summary_.pairs});
    }
    if (!summary_.parts[i].finished) read_part(files);
    bytes_of_parts_done_ += bytes_on_disk(files);
  }
}

void CorpusReader::read_part(const ParallelFiles& files) {
  CorpusPart& part = summary_.parts.back();
  ParallelReader reader(files, options_.skip_bad_lines);
  skip(reader, part.report.pairs_read);
  if (bytes_skipped_ < 0) {
    bytes_skipped_ = bytes_of_parts_done_ + reader.bytes_read();
    start_ = Clock::now();
  }
  const int64_t bytes = bytes_on_disk(files);
  const bool sample = options_.most_pairs > 0 && bytes > 0;
  read_chunks(reader, sample ? options_.most_pairs : INT64_MAX);
  part.report.bad_lines = reader.bad_lines();
  if (sample) {
    part.share_read =
        std::min(1.0, static_cast<double>(reader.bytes_read()) / static_cast<double>(bytes));
  }
  part.finished = true;
}

void CorpusReader::read_chunks(ParallelReader& reader, int64_t most) {
  for (int64_t read = 0;;) {
    std::vector<TextPair> pairs = next_chunk(reader, most - read);
    if (pairs.empty()) break;
    read += std::ssize(pairs);
    if (in_work_.size() == most_in_work_) take_first();
    start(std::move(pairs));
    keep_in_touch(reader);
  }
  while (!in_work_.empty()) take_first();
}

/// What an earlier start has tokenized.
void CorpusReader::skip(ParallelReader& reader, int64_t pairs) {
  TextPair pair;
  for (int64_t i = 0; i < pairs; ++i) {
    if (!reader.next(pair.source, pair.target)) {
      fail("{} has fewer lines than it had when reading it began",
           options_.corpora[summary_.parts.size() - 1].name());
    }
    if (i % kChunkPairs == 0) keep_in_touch(reader);
  }
}

std::vector<TextPair> CorpusReader::next_chunk(ParallelReader& reader, int64_t most) const {
  std::vector<TextPair> pairs;
  const int64_t wanted = std::min(most, kChunkPairs);
  TextPair pair;
  while (std::ssize(pairs) < wanted && reader.next(pair.source, pair.target)) {
    pairs.push_back(std::exchange(pair, {}));
  }
  return pairs;
}

void CorpusReader::start(std::vector<TextPair> pairs) {
  in_work_.push_back(std::async(std::launch::async,
                                [this, pairs = std::move(pairs)] { return tokenize_(pairs); }));
}

void CorpusReader::take_first() {
  const TokenizedPairs made = in_work_.front().get();
  in_work_.pop_front();
  store_.append(made.tokens);
  CorpusPart& part = summary_.parts.back();
  part.report += made.report;
  summary_.pairs += made.report.pairs_kept;
  part.end = summary_.pairs;
  summary_.source_tokens += made.source_tokens;
  summary_.target_tokens += made.target_tokens;
  summary_.fingerprint.append(made.fingerprint);
  uncommitted_ += made.report.pairs_read;
  if (uncommitted_ < kCommitPairs || !on_commit) return;
  on_commit();
  uncommitted_ = 0;
}

void CorpusReader::keep_in_touch(const ParallelReader& reader) {
  if (options_.stop != nullptr && options_.stop->load()) {
    throw StoppedReading("stopped while the training text was read");
  }
  if (!options_.on_progress || Clock::now() - shown_ < std::chrono::milliseconds(100)) return;
  shown_ = Clock::now();
  CorpusProgress progress{.pairs = summary_.report().pairs_read};
  const auto bytes = static_cast<double>(bytes_of_parts_done_ + reader.bytes_read());
  const auto all = static_cast<double>(bytes_in_all_);
  if (bytes_in_all_ > 0) progress.share = std::min(1.0, bytes / all);
  const double done = bytes - static_cast<double>(bytes_skipped_);
  if (bytes_in_all_ > 0 && bytes_skipped_ >= 0 && done > 0) {
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    progress.seconds_left = seconds * (all - bytes) / done;
  }
  options_.on_progress(progress);
}

}  // namespace attend
