#include "attend/data/corpus_cache.h"

#include <bit>
#include <cerrno>
#include <chrono>
#include <thread>

#include <sys/stat.h>

#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/data/corpus_reader.h"
#include "attend/data/fingerprint.h"

namespace attend {
namespace {

using nlohmann::json;

constexpr int kFormat = 1;
constexpr const char* kStateFile = "cache.json";
constexpr int64_t kMostStateBytes = int64_t{1} << 24;

json input_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) fail_on_file("open", path, errno);
  return {{"path", path},
          {"bytes", status.st_size},
          {"seconds", status.st_mtim.tv_sec},
          {"nanoseconds", status.st_mtim.tv_nsec}};
}

json inputs_of(const std::vector<std::string>& paths) {
  json inputs = json::array();
  for (const std::string& path : paths) inputs.push_back(input_of(path));
  return inputs;
}

json key_of(const CorpusOptions& options, const Tokenizer& source, const Tokenizer& target) {
  json corpora = json::array();
  for (const ParallelFiles& files : options.corpora) {
    json paths = json::array();
    for (const std::string& path : files.paths())
      paths.push_back(std::filesystem::absolute(path).string());
    corpora.push_back(paths);
  }
  return {{"format", kFormat},
          {"byte_order", std::endian::native == std::endian::little ? "little" : "big"},
          {"corpora", corpora},
          {"skip_bad_lines", options.skip_bad_lines},
          {"max_length", options.max_length},
          {"max_length_ratio", options.max_length_ratio},
          {"source_tokenizer", source.fingerprint()},
          {"target_tokenizer", target.fingerprint()}};
}

/// Names may be any bytes; JSON is UTF-8.
std::string dumped(const json& value) {
  return value.dump(1, ' ', false, json::error_handler_t::replace);
}

std::string folder_name(const json& key) {
  Fingerprint fingerprint;
  fingerprint.add(dumped(key));
  return fingerprint.hex();
}

TokenStore::Size size_of(const CorpusSummary& summary) { return {summary.pairs, summary.tokens()}; }

}  // namespace

CorpusCache::CorpusCache(const CorpusOptions& options, const Tokenizer& source,
                         const Tokenizer& target)
    : vocabularies_{source.vocabulary_size(), target.vocabulary_size()},
      key_(key_of(options, source, target)) {
  for (const ParallelFiles& files : options.corpora) {
    for (const std::string& path : files.paths()) {
      paths_.push_back(std::filesystem::absolute(path));
    }
  }
  inputs_ = inputs_of(paths_);
  folder_ = Path(options.cache) / folder_name(key_);
}

CorpusCache::Found CorpusCache::find() const {
  const Path path = folder_ / kStateFile;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  try {
    const json from = json::parse(read_file(path, kMostStateBytes));
    if (dumped(from.at("key")) != dumped(key_)) fail("it is of other text or options");
    if (dumped(from.at("inputs")) != dumped(inputs_)) {
      return {.problem = fmt::format("the training text has changed since {} was written",
                                     folder_.string())};
    }
    State state{CorpusSummary::from_json(from.at("summary")), from.at("complete").get<bool>()};
    const std::size_t parts = state.summary.parts.size(), expected = key_.at("corpora").size();
    if (parts > expected || (state.complete && parts < expected)) fail("its corpora are others");
    if (state.complete && !state.summary.parts.back().finished) fail("it is not complete");
    return {.state = std::move(state)};
  } catch (const std::exception& problem) {
    return {.problem = fmt::format("{} cannot be used ({})", path.string(), problem.what())};
  }
}

TokenStore CorpusCache::open(const State& state) const {
  return open_store(state, TokenStore::Mode::kRead);
}

TokenStore CorpusCache::open_for_writing(State& state) const {
  if (size_of(state.summary).pairs > 0) {
    try {
      return open_store(state, TokenStore::Mode::kWrite);
    } catch (const Error& error) {
      logger().warn("{}; the cache is written anew", error.what());
    }
  }
  // Not cut to nothing: another process may still train on the old files.
  for (const char* name : {kStateFile, TokenStore::kIndexFile, TokenStore::kTokensFile}) {
    remove_file(folder_ / name);
  }
  state = {};
  return open_store(state, TokenStore::Mode::kWrite);
}

TokenStore CorpusCache::open_store(const State& state, TokenStore::Mode mode) const {
  return {folder_, vocabularies_, size_of(state.summary), mode};
}

void CorpusCache::save(const State& state) const {
  write_file(folder_ / kStateFile, dumped({{"key", key_},
                                           {"inputs", inputs_},
                                           {"complete", state.complete},
                                           {"summary", state.summary.to_json()}}));
}

FileLock CorpusCache::lock(const std::atomic<bool>* stop) const {
  FileLock lock(folder_ / ".lock");
  bool said = false;
  while (!lock.try_lock()) {
    if (!said) {
      logger().info("another process{} writes {}; waiting for it", lock.holder(), folder_.string());
    }
    said = true;
    if (stop != nullptr && stop->load()) {
      throw StoppedReading(
          fmt::format("stopped while another process writes {}", folder_.string()));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  remove_temporaries(folder_);
  return lock;
}

void CorpusCache::check_unchanged() const {
  const json now = inputs_of(paths_);
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    if (now[i] != inputs_[i]) {
      fail("{} was changed while it was read; start again when it is complete", paths_[i]);
    }
  }
}

}  // namespace attend
