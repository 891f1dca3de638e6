#include "attend/data/corpus.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/data/corpus_cache.h"
#include "attend/data/corpus_reader.h"
#include "attend/data/pair_tokenizer.h"

namespace attend {
namespace {

double megabytes(int64_t bytes) {
  constexpr double kMiB = 1 << 20;
  return static_cast<double>(bytes) / kMiB;
}

struct Contents {
  TokenStore store;
  CorpusSummary summary;
};

/// The sum of the text files.
int64_t text_bytes(const CorpusOptions& options) {
  int64_t bytes = 0;
  for (const ParallelFiles& files : options.corpora) bytes += bytes_on_disk(files);
  return bytes;
}

Contents read_without_cache(const CorpusOptions& options, const PairTokenizer& tokenize) {
  Contents contents{TokenStore(tokenize.vocabularies()), {}};
  CorpusReader(options, tokenize, contents.store, contents.summary).read();
  return contents;
}

/// About how large the cache will be, by the first pairs of each corpus.
int64_t estimated_bytes(CorpusOptions options, const PairTokenizer& tokenize) {
  constexpr int64_t kSample = 2048;
  options.most_pairs = kSample;
  options.on_progress = {};
  const CorpusSummary whole = read_without_cache(options, tokenize).summary.extrapolated();
  return TokenStore::bytes({whole.pairs, whole.tokens()}, tokenize.vocabularies());
}

/// Writes a cache, or the rest of one.
class CacheWriter {
 public:
  CacheWriter(const CorpusCache& cache, const CorpusOptions& options, const PairTokenizer& tokenize)
      : cache_(cache), options_(options), tokenize_(tokenize) {}

  Contents write(CorpusCache::State state) {
    TokenStore store = cache_.open_for_writing(state);
    const auto commit = [&] {
      store.flush();
      cache_.save(state);
    };
    if (text_bytes(options_) >= kLargeText) announce(state);
    try {
      CorpusReader reader(options_, tokenize_, store, state.summary);
      reader.on_commit = commit;
      reader.read();
      cache_.check_unchanged();
      state.complete = true;
      commit();
    } catch (const NoSpaceError& error) {
      fail(
          "{}. The token ids of the training text need about {:.0f} MiB in {}; what is written of "
          "them is kept, and the next start goes on behind it",
          error.what(), megabytes(estimated_bytes(options_, tokenize_)), cache_.folder().string());
    } catch (const StoppedReading&) {
      commit();
      throw StoppedReading(fmt::format(
          "stopped after {} pairs of the training text; the same command goes on from there",
          state.summary.report().pairs_read));
    }
    return {cache_.open(state), std::move(state.summary)};
  }

 private:
  /// Less text is read in a second or two.
  static constexpr int64_t kLargeText = int64_t{16} << 20;

  void announce(const CorpusCache::State& state) {
    const int64_t needed = estimated_bytes(options_, tokenize_);
    const int64_t there =
        TokenStore::bytes({state.summary.pairs, state.summary.tokens()}, tokenize_.vocabularies());
    const int64_t free = free_bytes(cache_.folder());
    const std::string folder = cache_.folder().string();
    if (there > 0) {
      logger().info("going on to write {}: {} pairs of the text, {:.0f} MiB, are done", folder,
                    state.summary.report().pairs_read, megabytes(there));
    }
    logger().info("writing the training text as token ids to {}: about {:.0f} MiB, {:.0f} MiB free",
                  folder, megabytes(needed), megabytes(free));
    // It is an estimate: only where it is far off the mark is it worth a refusal.
    constexpr double kSurely = 0.8;
    if (static_cast<double>(free) < kSurely * static_cast<double>(needed - there)) {
      fail(
          "{} has {:.0f} MiB free, and the token ids of the training text will need about {:.0f} "
          "MiB there; free some, or choose another folder with --cache",
          folder, megabytes(free), megabytes(needed - there));
    }
  }

  const CorpusCache& cache_;
  const CorpusOptions& options_;
  const PairTokenizer& tokenize_;
};

/// What a complete cache holds; where it is damaged, `found` says so.
std::optional<Contents> opened(const CorpusCache& cache, CorpusCache::Found& found) {
  if (!found.state || !found.state->complete) return {};
  try {
    return Contents{cache.open(*found.state), found.state->summary};
  } catch (const Error& error) {
    found = {.problem = error.what()};
    return {};
  }
}

Contents read_with_cache(const CorpusOptions& options, const PairTokenizer& tokenize,
                         const CorpusCache& cache) {
  // Without the lock first, so that a cache in a place that cannot be written can be used.
  CorpusCache::Found found = cache.find();
  if (auto contents = opened(cache, found)) return std::move(*contents);
  const FileLock lock = cache.lock(options.stop);
  found = cache.find();
  if (auto contents = opened(cache, found)) return std::move(*contents);
  if (!found.problem.empty()) logger().warn("{}; the cache is written anew", found.problem);
  return CacheWriter(cache, options, tokenize)
      .write(std::move(found.state).value_or(CorpusCache::State{}));
}

}  // namespace

ParallelCorpus ParallelCorpus::load(const CorpusOptions& options, const Tokenizer& source_tokenizer,
                                    const Tokenizer& target_tokenizer) {
  options.validate();
  for (const ParallelFiles& files : options.corpora) files.refuse_pipes();
  const PairTokenizer tokenize(options, source_tokenizer, target_tokenizer);
  Contents contents = [&] {
    if (options.cache.empty()) return read_without_cache(options, tokenize);
    return read_with_cache(options, tokenize,
                           CorpusCache(options, source_tokenizer, target_tokenizer));
  }();
  return {std::move(contents.store), std::move(contents.summary), options, source_tokenizer,
          target_tokenizer};
}

ParallelCorpus::ParallelCorpus(TokenStore store, CorpusSummary summary,
                               const CorpusOptions& options, const Tokenizer& source_tokenizer,
                               const Tokenizer& target_tokenizer)
    : store_(std::move(store)),
      summary_(std::move(summary)),
      source_eos_(source_tokenizer.eos_id()),
      target_bos_(target_tokenizer.bos_id()),
      target_eos_(target_tokenizer.eos_id()) {
  std::string names;
  for (std::size_t i = 0; i < options.corpora.size(); ++i) {
    summary_.parts[i].name = options.corpora[i].name();
    summary_.parts[i].weight = options.corpora[i].weight;
    names += (names.empty() ? "" : ", ") + summary_.parts[i].name;
  }
  if (pairs() == 0) {
    fail("there is no pair to use in {}: {} pairs read, {}", names, report().pairs_read,
         report().to_string());
  }
}

std::string ParallelCorpus::fingerprint() const {
  SequenceFingerprint all = summary_.fingerprint;
  // Epochs are drawn from each corpus apart.
  for (std::size_t i = 1; i < parts().size(); ++i) all.add(static_cast<uint64_t>(parts()[i].begin));
  return fmt::format("{}{:016x}", kFingerprintVersion, all.value());
}

int64_t cache_bytes(const CorpusSummary& summary, const Tokenizer& source_tokenizer,
                    const Tokenizer& target_tokenizer) {
  return TokenStore::bytes({summary.pairs, summary.tokens()}, {source_tokenizer.vocabulary_size(),
                                                               target_tokenizer.vocabulary_size()});
}

bool has_complete_cache(const CorpusOptions& options, const Tokenizer& source_tokenizer,
                        const Tokenizer& target_tokenizer) {
  if (options.cache.empty()) return false;
  const auto found = CorpusCache(options, source_tokenizer, target_tokenizer).find();
  return found.state && found.state->complete;
}

}  // namespace attend
