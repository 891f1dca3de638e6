// Contract 10: the cache that corpora of any size are trained from.
#include "attend/data/corpus_cache.h"

#include <csignal>
#include <functional>

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attend/base/log.h"
#include "attend/data/batches.h"
#include "attend/data/corpus.h"
#include "attend/data/corpus_reader.h"
#include "tests/data/test_files.h"

namespace attend {
namespace {

/// What is logged during its life.
class Log {
 public:
  Log() : before_(logger().sinks()) {
    logger().sinks() = {std::make_shared<spdlog::sinks::ostream_sink_mt>(stream_)};
    logger().sinks().front()->set_pattern("%v");
  }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log() { logger().sinks() = before_; }
  std::string text() const { return stream_.str(); }

 private:
  std::ostringstream stream_;
  std::vector<spdlog::sink_ptr> before_;
};

/// A TSV of `pairs` short pairs, of which every tenth is empty.
std::string short_pairs(int64_t pairs) {
  const std::vector<std::string> lines = made_up_lines(500, 4);
  std::string tsv;
  for (int64_t i = 0; i < pairs; ++i) {
    tsv += i % 10 == 9 ? "\t" : lines[i % 499].substr(0, 8) + "x\t" + lines[i % 311].substr(0, 8);
    tsv += '\n';
  }
  return tsv;
}

/// A corpus of two parts and a place for caches.
class CachedCorpus {
 public:
  explicit CachedCorpus(int64_t pairs = 3000) {
    put(file(), short_pairs(pairs));
    put(folder_ / "source", "haus\ngarten\n");
    put(folder_ / "target", "Ein\nder\n");
  }
  Path file() const { return folder_ / "pairs.tsv"; }
  Path path(const std::string& name) const { return folder_ / name; }
  CorpusOptions options(const std::string& cache = "cache") const {
    return {.corpora = {{.tsv = file(), .weight = 2},
                        {.source = folder_ / "source", .target = folder_ / "target"}},
            .threads = 2,
            .cache = folder_ / cache};
  }
  ParallelCorpus load(const std::string& cache = "cache") const { return load(options(cache)); }
  static ParallelCorpus load(const CorpusOptions& options) {
    return ParallelCorpus::load(options, small_tokenizer(), small_tokenizer());
  }
  /// The folder of the cache that was written.
  Path cache(const std::string& name = "cache") const {
    return CorpusCache(options(name), small_tokenizer(), small_tokenizer()).folder();
  }

 private:
  TemporaryFolder folder_;
};

void expect_same(const ParallelCorpus& a, const ParallelCorpus& b) {
  EXPECT_EQ(a.fingerprint(), b.fingerprint());
  EXPECT_EQ(a.report(), b.report());
  ASSERT_EQ(a.parts().size(), b.parts().size());
  for (std::size_t i = 0; i < a.parts().size(); ++i) {
    EXPECT_EQ(a.parts()[i].name, b.parts()[i].name);
    EXPECT_EQ(a.parts()[i].weight, b.parts()[i].weight);
    EXPECT_EQ(a.parts()[i].begin, b.parts()[i].begin);
    EXPECT_EQ(a.parts()[i].end, b.parts()[i].end);
    EXPECT_EQ(a.parts()[i].report, b.parts()[i].report);
  }
  EXPECT_EQ(a.source_tokens(), b.source_tokens());
  EXPECT_EQ(a.target_tokens(), b.target_tokens());
}

void expect_same_files(const Path& a, const Path& b) {
  for (const char* name : {TokenStore::kIndexFile, TokenStore::kTokensFile}) {
    EXPECT_TRUE(get(a / name) == get(b / name)) << name;
  }
}

/// Runs `work` in a process of its own; the status that waitpid gives.
class Child {
 public:
  explicit Child(const std::function<void()>& work) : child_(fork()) {
    if (child_ != 0) return;
    try {
      work();
    } catch (...) {
      _exit(1);
    }
    _exit(0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (child_ > 0) kill();
  }
  void kill() {
    ::kill(child_, SIGKILL);
    wait();
  }
  bool is_done() const {
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOHANG | WNOWAIT);
    return info.si_pid != 0;
  }
  /// Whether it ended well.
  bool wait() {
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = -1;
    return status == 0;
  }

 private:
  pid_t child_;
};

TEST(Contract10, ALaterStartReadsNoTextAndReportsTheSame) {
  const CachedCorpus corpus;
  CorpusOptions without = corpus.options();
  without.cache.clear();
  const ParallelCorpus first = corpus.load();
  expect_same(first, corpus.load(without));
  // As large as before and of the same time, but no text: it would be an error to read it.
  const auto time = std::filesystem::last_write_time(corpus.file());
  put(corpus.file(), std::string(get(corpus.file()).size(), '\0'));
  std::filesystem::last_write_time(corpus.file(), time);
  const ParallelCorpus later = corpus.load();
  expect_same(later, first);
  EXPECT_EQ(later.report().empty, 300);
  EXPECT_EQ(later.parts()[0].weight, 2);
}

TEST(Contract10, ACacheThatCannotBeWrittenCanBeRead) {
  SmallDisk disk("8m");
  if (!disk.mounted()) GTEST_SKIP() << disk.reason();
  const CachedCorpus corpus;
  CorpusOptions options = corpus.options();
  options.cache = disk.path();
  const ParallelCorpus first = corpus.load(options);
  disk.make_read_only();
  expect_same(corpus.load(options), first);
}

TEST(Contract10, TextThatChangedIsReadAnew) {
  const CachedCorpus corpus;
  const std::string before = corpus.load().fingerprint();
  const auto time = std::filesystem::last_write_time(corpus.file());
  // Another size at the same time.
  std::string text = get(corpus.file()) + "haus\thaus\n";
  put(corpus.file(), text);
  std::filesystem::last_write_time(corpus.file(), time);
  const std::string longer = corpus.load().fingerprint();
  EXPECT_NE(longer, before);
  // The same size at another time.
  text[text.size() - 2] = 't';
  put(corpus.file(), text);
  std::filesystem::last_write_time(corpus.file(), time + std::chrono::seconds(1));
  const Log log;
  EXPECT_NE(corpus.load().fingerprint(), longer);
  expect_contains(log.text(), "the training text has changed since " + corpus.cache().string());
  EXPECT_EQ(entries_of(corpus.path("cache")).size(), 1U);  // in place of the old one
}

TEST(Contract10, OtherOptionsAndTokenizersHaveCachesOfTheirOwn) {
  const CachedCorpus corpus;
  CorpusOptions options = corpus.options();
  options.max_length = 3;
  const std::string all = corpus.load().fingerprint();
  EXPECT_NE(corpus.load(options).fingerprint(), all);
  EXPECT_EQ(corpus.load().fingerprint(), all);
  const std::vector<std::string> lines = made_up_lines(500, 9);
  const Tokenizer other = Tokenizer::train({.vocabulary_size = 300}, lines_of(lines));
  EXPECT_NE(ParallelCorpus::load(corpus.options(), small_tokenizer(), other).fingerprint(), all);
  EXPECT_EQ(entries_of(corpus.path("cache")).size(), 3U);
}

TEST(Contract10, KilledAtAnyMomentAWriterGoesOnToTheSameFiles) {
  const CachedCorpus corpus(450'000);  // three commits and a rest
  const ParallelCorpus straight = corpus.load("straight");
  const Path state = corpus.cache() / "cache.json";
  int kills = 0;
  std::string seen;
  for (int i = 0; i < 40; ++i) {
    Child child([&] { corpus.load(); });
    // Each second one right after it has committed, the others anywhere.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(5 + 15 * i);
    const auto committed = [&] { return i % 2 == 0 && get(state) != seen; };
    const auto late = [&] { return i % 2 == 1 && std::chrono::steady_clock::now() > deadline; };
    while (!child.is_done() && !committed() && !late()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (child.is_done()) break;
    child.kill();
    ++kills;
    seen = get(state);
  }
  EXPECT_GE(kills, 3);
  const CorpusCache cache(corpus.options(), small_tokenizer(), small_tokenizer());
  expect_same(corpus.load(), straight);
  expect_same_files(corpus.cache(), corpus.cache("straight"));
  EXPECT_TRUE(cache.find().state->complete);
}

TEST(Contract10, AWriterThatIsStoppedKeepsWhatItHas) {
  const CachedCorpus corpus(60'000);  // less than a commit
  const ParallelCorpus straight = corpus.load("straight");
  std::atomic<bool> stop = false;
  CorpusOptions options = corpus.options();
  options.stop = &stop;
  int64_t stopped_after = 0;
  options.on_progress = [&](const CorpusProgress& progress) {
    EXPECT_TRUE(progress.share > 0 && progress.share <= 1) << progress.share;
    stopped_after = progress.pairs;
    stop = true;
  };
  std::string message;
  try {
    corpus.load(options);
  } catch (const StoppedReading& stopped) {
    message = stopped.what();
  }
  if (message.empty()) GTEST_SKIP() << "this machine reads 60 000 pairs in less than 0.1 s";
  expect_contains(message, "the same command goes on from there");
  const CorpusCache cache(options, small_tokenizer(), small_tokenizer());
  EXPECT_GE(cache.find().state->summary.report().pairs_read, stopped_after);
  EXPECT_FALSE(cache.find().state->complete);
  expect_same(corpus.load(), straight);
  expect_same_files(corpus.cache(), corpus.cache("straight"));
}

TEST(Contract10, DamagedCachesAreWrittenAnew) {
  const CachedCorpus corpus(300);
  const ParallelCorpus straight = corpus.load();
  const Path cache = corpus.cache();
  const std::string state = get(cache / "cache.json");
  std::mt19937 random(11);
  const auto expect_healed = [&](const std::string& damage) {
    const Log log;
    ASSERT_NO_THROW(expect_same(corpus.load(), straight)) << damage;
    ASSERT_FALSE(HasFailure()) << damage;
  };
  for (int i = 0; i < 400; ++i) {
    const std::string damaged = mutated(state, random);
    put(cache / "cache.json", damaged);
    // A digit of the fingerprint alone tells nobody that it is wrong.
    try {
      const Log log;
      const ParallelCorpus loaded = corpus.load();
      ASSERT_EQ(loaded.pairs(), straight.pairs()) << damaged;
    } catch (const std::exception& error) {
      FAIL() << error.what() << "\n" << damaged;
    }
    put(cache / "cache.json", state);
    expect_healed(damaged);
  }
  for (const char* name : {TokenStore::kIndexFile, TokenStore::kTokensFile, "cache.json"}) {
    for (const char* damage : {"cut", "longer", "gone", "empty"}) {
      const std::string bytes = get(cache / name);
      if (damage == std::string("cut")) put(cache / name, bytes.substr(0, bytes.size() / 2));
      if (damage == std::string("longer")) put(cache / name, bytes + "xx");
      if (damage == std::string("gone")) std::filesystem::remove(cache / name);
      if (damage == std::string("empty")) put(cache / name, "");
      expect_healed(std::string(name) + " " + damage);
    }
  }
}

TEST(Contract10, AFullDiskIsNamedAndWhatIsWrittenIsKept) {
  SmallDisk disk("6m");
  if (!disk.mounted()) GTEST_SKIP() << disk.reason();
  const CachedCorpus corpus(300'000);
  const ParallelCorpus straight = corpus.load("straight");
  CorpusOptions options = corpus.options();
  options.cache = disk.path();
  const std::string message = message_of([&] { corpus.load(options); });
  expect_contains(message, "cannot write " + disk.path().string());
  expect_contains(message, "No space left on device");
  expect_contains(message, "need about ");
  const CorpusCache cache(options, small_tokenizer(), small_tokenizer());
  ASSERT_TRUE(cache.find().state);
  EXPECT_GE(cache.find().state->summary.report().pairs_read, 100'000);
  std::filesystem::copy(disk.path(), corpus.path("cache"),
                        std::filesystem::copy_options::recursive);
  expect_same(corpus.load(), straight);
  expect_same_files(corpus.cache(), corpus.cache("straight"));
}

TEST(Contract10, ADiskThatIsTooSmallIsNamedBeforeTheTextIsRead) {
  SmallDisk disk("1m");
  if (!disk.mounted()) GTEST_SKIP() << disk.reason();
  const CachedCorpus corpus(1'200'000);
  CorpusOptions options = corpus.options();
  options.cache = disk.path();
  const Log log;
  const auto start = std::chrono::steady_clock::now();
  const std::string message = message_of([&] { corpus.load(options); });
  expect_contains(message, " has 1 MiB free, and the token ids of the training text will need ");
  expect_contains(message, "--cache");
  expect_contains(log.text(), "writing the training text as token ids to ");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(Contract10, ASecondProcessWaitsForTheFirst) {
  const CachedCorpus corpus(150'000);
  Child first([&] { corpus.load(); });
  while (!std::filesystem::exists(corpus.cache() / TokenStore::kIndexFile) && !first.is_done()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const Log log;
  const ParallelCorpus second = corpus.load();
  EXPECT_TRUE(first.wait());
  expect_contains(log.text(), "writes " + corpus.cache().string() + "; waiting for it");
  expect_same(second, corpus.load("straight"));
}

TEST(Contract10, AWaitingProcessCanBeStopped) {
  const CachedCorpus corpus;
  FileLock held(corpus.cache() / ".lock");
  ASSERT_TRUE(held.try_lock());
  const std::atomic<bool> stop = true;
  CorpusOptions options = corpus.options();
  options.stop = &stop;
  EXPECT_THROW(corpus.load(options), StoppedReading);
}

TEST(Contract10, ARunThatReadsOutlivesACacheThatIsWrittenAnew) {
  const CachedCorpus corpus;
  const ParallelCorpus old = corpus.load();
  const auto tokens = [&] {
    std::vector<int32_t> source, target;
    for (const StoredPair& pair : old.store().pairs(0, old.pairs())) {
      old.store().read(pair, source, target);
    }
    return source;
  };
  const std::vector<int32_t> before = tokens();
  put(corpus.file(), "haus\thaus\n");
  EXPECT_EQ(corpus.load().pairs(), 3);
  EXPECT_EQ(tokens(), before);
}

TEST(Contract10, WhatCanBeReadOnlyOnceIsRefused) {
  const CachedCorpus corpus;
  const Path pipe = corpus.path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  CorpusOptions options = corpus.options();
  for (const std::string& path : {pipe.string(), std::string("-"), std::string("/dev/null")}) {
    options.corpora = {{.tsv = corpus.file()}, {.tsv = path}};
    const std::string message = message_of([&] { corpus.load(options); });
    expect_contains(message, path);
    expect_contains(message, "is no regular file");
    EXPECT_FALSE(std::filesystem::exists(corpus.path("cache")));
  }
}

/// The most memory in KiB that a process took which writes a cache and makes batches from it, and
/// one that finds it there, beyond what they had at the start.
struct Peaks {
  int64_t writing = 0;
  int64_t reading = 0;
};

int64_t status_kib(const std::string& field) {
  const std::string status = get("/proc/self/status");
  return std::stoll(status.substr(status.find(field) + field.size()));
}

Peaks peaks_with(int64_t pairs) {
  const CachedCorpus corpus(pairs);
  const auto peak_of = [&](const char* result) {
    Child child([&] {
      const int64_t before = status_kib("VmRSS:");
      put("/proc/self/clear_refs", "5");  // the peak begins here
      const ParallelCorpus loaded = corpus.load();
      BatchStream stream(loaded, {.batch_tokens = 1000});
      for (int i = 0; i < 300; ++i) stream.next();
      put(corpus.path(result), std::to_string(status_kib("VmHWM:") - before));
    });
    EXPECT_TRUE(child.wait());
    return std::stoll(get(corpus.path(result)));
  };
  const int64_t writing = peak_of("writing");
  return {writing, peak_of("reading")};
}

TEST(Contract10, MemoryDoesNotGrowWithTheCorpus) {
#ifdef ATTEND_SANITIZE
  GTEST_SKIP() << "sanitizers keep memory that was given back";
#endif
  // Token ids of the larger one alone would take 13 MiB, and an epoch's order 4 MiB.
  constexpr int64_t kFew = 20'000, kMany = 500'000, kMostKib = 2048;
  small_tokenizer();
  const Peaks few = peaks_with(kFew), many = peaks_with(kMany);
  EXPECT_LT(many.writing - few.writing, kMostKib) << few.writing << " " << many.writing;
  EXPECT_LT(many.reading - few.reading, kMostKib) << few.reading << " " << many.reading;
  RecordProperty("writing", fmt::format("{} {} KiB", few.writing, many.writing));
  RecordProperty("reading", fmt::format("{} {} KiB", few.reading, many.reading));
}

}  // namespace
}  // namespace attend
