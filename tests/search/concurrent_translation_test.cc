// One Translator, used by many threads at once: through its public interface alone, so that this
// holds whatever is below it.
#include <atomic>
#include <functional>
#include <latch>
#include <optional>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "attend/io/model_directory.h"
#include "attend/kernels/gemm.h"
#include "attend/search/translator.h"
#include "tests/data/test_files.h"
#include "tests/search/models.h"

namespace attend {
namespace {

using Lines = std::vector<std::string>;

Translator make_translator(int64_t workers, int64_t n_best = 1, int64_t batch_tokens = 150) {
  const std::shared_ptr<const Tokenizer> tokenizer(std::shared_ptr<const Tokenizer>(),
                                                   &small_tokenizer());
  return {random_model(search_config(tokenizer->vocabulary_size()), DType::kFloat32, 3),
          tokenizer,
          tokenizer,
          {.search = {.max_extra_length = 5, .n_best = n_best, .batch_tokens = batch_tokens},
           .workers = workers}};
}

/// The same model, loaded in every precision that this machine computes in.
std::vector<Translator> loaded_translators(int64_t workers) {
  const TestFolder folder;
  const std::shared_ptr<const Tokenizer> tokenizer(std::shared_ptr<const Tokenizer>(),
                                                   &small_tokenizer());
  const auto model = random_model(search_config(tokenizer->vocabulary_size()), DType::kFloat32, 3);
  NamedTensors weights;
  for (const Parameter& parameter : model->parameters().parameters()) {
    weights.emplace_back(parameter.name, parameter.master);
  }
  save_model_directory(folder.path("model"), model->config(), tokenizer, tokenizer, weights);
  TranslatorOptions options = {.search = {.max_extra_length = 5, .n_best = 2, .batch_tokens = 150},
                               .workers = workers};
  std::vector<InferencePrecision> precisions = {InferencePrecision::kFloat32};
  if (has_bfloat16_arithmetic()) precisions.push_back(InferencePrecision::kBFloat16);
  if (has_int8_arithmetic()) precisions.push_back(InferencePrecision::kInt8);
  std::vector<Translator> loaded;
  for (const InferencePrecision precision : precisions) {
    options.precision = precision;
    loaded.emplace_back(folder.path("model"), options);
  }
  return loaded;
}

/// All that a caller can see of a translation, floats bit by bit.
std::string written(const Translation& translation) {
  std::string all;
  for (const Alternative& each : translation.alternatives) {
    all += fmt::format("{}|{:a}|{:a}|{}\n", each.text, each.log_prob, each.score, each.tokens);
  }
  return all;
}

Lines in_a_batch(const Translator& translator, const Lines& lines) {
  Lines found;
  for (const Translation& each : translator.translate(lines)) found.push_back(written(each));
  return found;
}

Lines one_by_one(const Translator& translator, const Lines& lines) {
  Lines found;
  for (const std::string& line : lines) found.push_back(written(translator.translate_line(line)));
  return found;
}

Lines in_a_stream(const Translator& translator, const Lines& lines) {
  Lines found;
  const auto sink = [&](const Translation& each) { found.push_back(written(each)); };
  translator.translate_stream(lines_of(lines), sink);
  return found;
}

Lines from_a_reader(const Translator& translator, const Lines& lines) {
  std::istringstream input(joined(lines));
  LineReader reader(input, "the input");
  Lines found;
  translator.translate_stream(reader,
                              [&](const Translation& each) { found.push_back(written(each)); });
  return found;
}

using Way = std::function<Lines(const Translator&, const Lines&)>;
const std::vector<Way> kWays = {in_a_batch, in_a_stream, one_by_one, from_a_reader};

/// Runs `work(0)` to `work(count - 1)` in threads that begin together.
void at_once(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::latch start(static_cast<std::ptrdiff_t>(count));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      work(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Lines of each of so many callers, some of them blank, and what one worker makes of them alone.
struct Callers {
  explicit Callers(std::size_t count, int64_t n_best = 1, int lines_each = 25) {
    const Translator alone = make_translator(1, n_best);
    for (std::size_t i = 0; i < count; ++i) {
      lines.push_back(made_up_lines(lines_each, 100 + i));
      lines.back()[i % lines.back().size()] = "";
      expected.push_back(one_by_one(alone, lines.back()));
    }
  }
  std::vector<Lines> lines, expected;
};

TEST(ConcurrentTranslation, EveryCallerGetsWhatItWouldGetAlone) {
  const Callers callers(8, 3);
  for (const int64_t workers : {1, 3}) {
    const Translator translator = make_translator(workers, 3);
    std::vector<Lines> found(callers.lines.size());
    at_once(callers.lines.size(), [&](std::size_t i) {
      found[i] = kWays[i % kWays.size()](translator, callers.lines[i]);
    });
    EXPECT_EQ(found, callers.expected) << workers << " workers";
  }
}

TEST(ConcurrentTranslation, EveryPrecisionIsTheSameForAll) {
  const std::vector<Translator> alone = loaded_translators(1);
  const std::vector<Translator> shared = loaded_translators(3);
  const Lines lines = made_up_lines(40, 7);
  for (std::size_t i = 0; i < alone.size(); ++i) {
    const Lines expected = one_by_one(alone[i], lines);
    std::vector<Lines> found(4);
    at_once(4, [&](std::size_t caller) { found[caller] = kWays[caller](shared[i], lines); });
    for (const Lines& each : found) EXPECT_EQ(each, expected) << name_of(shared[i].precision());
  }
}

TEST(ConcurrentTranslation, CallersComeAndGo) {
  const Callers callers(4, 1, 12);
  const Translator translator = make_translator(2);
  std::atomic<int> wrong = 0;
  at_once(6, [&](std::size_t thread) {
    for (std::size_t round = 0; round < 6; ++round) {
      const std::size_t i = (thread + round) % callers.lines.size();
      const Way& way = kWays[(thread * 5 + round) % kWays.size()];
      if (way(translator, callers.lines[i]) != callers.expected[i]) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(ConcurrentTranslation, NoCallersCountsAreAnothers) {
  const Callers callers(6);
  const Translator translator = make_translator(2);
  std::vector<TranslationCounts> alone(6), found(6);
  for (std::size_t i = 0; i < 6; ++i) translator.translate(callers.lines[i], &alone[i]);
  at_once(6, [&](std::size_t i) {
    if (i % 2 == 0) {
      translator.translate(callers.lines[i], &found[i]);
    } else {
      found[i] = translator.translate_stream(lines_of(callers.lines[i]), [](const Translation&) {});
    }
  });
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(found[i].lines, 25);
    EXPECT_EQ(found[i].blank, 1);
    EXPECT_EQ(found[i].source_tokens, alone[i].source_tokens);
    EXPECT_EQ(found[i].target_tokens, alone[i].target_tokens);
  }
}

TEST(ConcurrentTranslation, ACallerThatFailsHarmsNoOther) {
  const Callers callers(8);
  const Translator translator = make_translator(2);
  std::vector<Lines> found(8);
  std::vector<std::string> messages(8);
  at_once(8, [&](std::size_t i) {
    const Lines& lines = callers.lines[i];
    const auto failing_sink = [&, taken = 0](const Translation&) mutable {
      if (++taken == 5) throw Error(fmt::format("sink {}", i));
    };
    const auto failing_source = [&, given = std::size_t{0}](std::string& line) mutable {
      if (given == 7) throw Error(fmt::format("source {}", i));
      line = lines[given++];
      return true;
    };
    const auto keep = [&](const Translation& each) { found[i].push_back(written(each)); };
    if (i % 4 == 1) {
      messages[i] = message_of([&] { translator.translate_stream(lines_of(lines), failing_sink); });
    } else if (i % 4 == 3) {
      messages[i] = message_of([&] { translator.translate_stream(failing_source, keep); });
    } else {
      found[i] = kWays[i % kWays.size()](translator, lines);
    }
  });
  for (std::size_t i = 0; i < 8; ++i) {
    if (i % 4 == 1) {
      EXPECT_EQ(messages[i], fmt::format("sink {}", i));
    } else if (i % 4 == 3) {
      EXPECT_EQ(messages[i], fmt::format("source {}", i));
      EXPECT_EQ(found[i], Lines(callers.expected[i].begin(), callers.expected[i].begin() + 7));
    } else {
      EXPECT_EQ(found[i], callers.expected[i]);
    }
  }
  EXPECT_EQ(in_a_batch(translator, callers.lines[0]), callers.expected[0]) << "afterwards";
}

TEST(ConcurrentTranslation, ATranslatorMovesWithItsWorkers) {
  const Callers callers(4);
  Translator first = make_translator(2);
  std::vector<Lines> found(4);
  at_once(2, [&](std::size_t i) { found[i] = in_a_stream(first, callers.lines[i]); });
  Translator second = make_translator(1);
  second = std::move(first);
  const Translator third = std::move(second);
  EXPECT_EQ(third.workers(), 2);
  at_once(2, [&](std::size_t i) { found[i + 2] = in_a_batch(third, callers.lines[i + 2]); });
  EXPECT_EQ(found, callers.expected);
}

TEST(ConcurrentTranslation, EndsWithSentencesOfCancelledStreamsStillWaiting) {
  const Callers callers(1, 1, 200);
  for (int round = 0; round < 5; ++round) {
    std::optional<Translator> translator(make_translator(2));
    at_once(4, [&](std::size_t) {
      const auto sink = [](const Translation&) { throw Error("enough"); };
      EXPECT_THROW(translator->translate_stream(lines_of(callers.lines[0]), sink), Error);
    });
    translator.reset();
  }
}

TEST(ConcurrentTranslation, ASinkMayTranslate) {
  const Callers callers(2);
  const Translator translator = make_translator(1);
  Lines found;
  translator.translate_stream(lines_of(callers.lines[0]), [&](const Translation&) {
    found.push_back(written(translator.translate_line(callers.lines[1][found.size()])));
  });
  EXPECT_EQ(found, callers.expected[1]);
}

TEST(ConcurrentTranslation, TranslatorsDoNotShare) {
  const Callers callers(4);
  std::vector<Lines> found(4);
  at_once(4, [&](std::size_t i) {
    const Translator own = make_translator(1 + static_cast<int64_t>(i % 2));
    found[i] = kWays[i](own, callers.lines[i]);
  });
  EXPECT_EQ(found, callers.expected);
}

// -------------------------------------------------------------- lines that come from anywhere

TEST(TranslateStream, LinesFromAFunctionAreTakenAsTheyAre) {
  const Translator translator = make_translator(1);
  const Lines lines = {"haus\ngarten", "haus\r", "", "\xEF\xBB\xBFhaus", std::string("a\0b", 3)};
  EXPECT_EQ(in_a_stream(translator, lines), in_a_batch(translator, lines));
  TranslationCounts counts =
      translator.translate_stream(lines_of(lines), [](const Translation&) {});
  EXPECT_EQ(counts.lines, 5);
}

}  // namespace
}  // namespace attend
